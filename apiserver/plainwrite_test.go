package apiserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// witness is an admission chain that knows on which way a request came, and does
// to some objects what a plugin may.
type witness struct {
	admission.Interface
	plain, upstream atomic.Int32
}

func (w *witness) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if bytes.Contains(debug.Stack(), []byte("rest.(*plainWrite)")) {
		w.plain.Add(1)
	} else {
		w.upstream.Add(1)
	}
	if obj, ok := a.GetObject().(metav1.Object); ok {
		w.meddle(obj)
	}
	if strings.HasPrefix(a.GetName(), "refused") {
		return admission.NewForbidden(a, fmt.Errorf("options %v, user %s, namespace %s", a.GetOperationOptions(), a.GetUserInfo().GetName(), a.GetNamespace()))
	}
	return w.Interface.(admission.MutationInterface).Admit(ctx, a, o)
}

func (w *witness) meddle(obj metav1.Object) {
	switch {
	case strings.HasPrefix(obj.GetName(), "owned"):
		obj.SetOwnerReferences(append(obj.GetOwnerReferences(), obj.GetOwnerReferences()...))
	case strings.HasPrefix(obj.GetName(), "spoiled"):
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Nothing"}})
	case strings.HasPrefix(obj.GetName(), "disowned"):
		obj.SetManagedFields(nil)
	}
}

func (w *witness) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if strings.HasPrefix(a.GetName(), "invalid") {
		return admission.NewForbidden(a, fmt.Errorf("%s of %v by %s", a.GetOperation(), a.GetKind(), a.GetUserInfo().GetName()))
	}
	return w.Interface.(admission.ValidationInterface).Validate(ctx, a, o)
}

// writes are a story of writes: each line meets what the ones before left.
var writes = []struct {
	name                     string
	method, path, body, form string // form: the content type; "" for JSON
	query                    string
	as                       user.Info
	upstream                 bool // not plain: the body goes to upstream as it came
}{
	{name: "create", method: "POST", path: cmPath, body: cmBody("a")},
	{name: "taken", method: "POST", path: cmPath, body: cmBody("a")},
	{name: "manager", method: "POST", path: cmPath, body: cmBody("b"), query: "fieldManager=me&fieldValidation=Strict"},
	{name: "empty", method: "POST", path: cmPath, body: `{"metadata":{"name":"c"}}`},
	{name: "unknown field", method: "POST", path: cmPath, body: `{"metadata":{"name":"d"},"dada":{}}`, upstream: true},
	{name: "unknown field ignored", method: "POST", path: cmPath, body: `{"metadata":{"name":"e"},"dada":{}}`, query: "fieldValidation=Ignore"},
	{name: "unknown field refused", method: "POST", path: cmPath, body: `{"metadata":{"name":"f"},"dada":{}}`, query: "fieldValidation=Strict", upstream: true},
	{name: "bad parameter", method: "POST", path: cmPath, body: cmBody("f"), query: "fieldValidation=Never", upstream: true},
	{name: "dry run", method: "POST", path: cmPath, body: cmBody("f"), query: "dryRun=All", upstream: true},
	{name: "no name", method: "POST", path: cmPath, body: `{"metadata":{}}`},
	{name: "bad label", method: "POST", path: cmPath, body: `{"metadata":{"name":"f","labels":{"a b":"c"}}}`},
	{name: "version", method: "POST", path: cmPath, body: `{"metadata":{"name":"f","resourceVersion":"3"}}`},
	{name: "other namespace", method: "POST", path: cmPath, body: `{"metadata":{"name":"f","namespace":"x"}}`, upstream: true},
	{name: "other kind", method: "POST", path: cmPath, body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"f"}}`, upstream: true},
	{name: "no namespace", method: "POST", path: strings.Replace(cmPath, "default", "nowhere", 1), body: cmBody("a")},
	{name: "garbage", method: "POST", path: cmPath, body: `{"metadata":`, upstream: true},
	{name: "yaml", method: "POST", path: cmPath, body: "metadata:\n  name: y\n", form: "application/yaml", upstream: true},
	{
		name:   "system fields",
		method: "POST",
		path:   cmPath,
		body:   `{"metadata":{"name":"g","uid":"u","selfLink":"/x","generation":3,"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z"}}`,
	},
	{
		name:   "managedFields",
		method: "POST",
		path:   cmPath,
		body:   `{"metadata":{"name":"h","managedFields":[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]},"data":{"a":"b"}}`,
	},
	{name: "owners", method: "POST", path: cmPath, body: `{"metadata":{"name":"i","ownerReferences":[` + ownerJSON + `,` + ownerJSON + `]}}`, upstream: true},
	{name: "owners of admission", method: "POST", path: cmPath, body: `{"metadata":{"name":"owned","ownerReferences":[` + ownerJSON + `]}}`},
	{name: "spoiled by admission", method: "POST", path: cmPath, body: cmBody("spoiled")},
	{name: "disowned by admission", method: "POST", path: cmPath, body: cmBody("disowned")},
	{name: "refused by admission", method: "POST", path: cmPath, body: cmBody("refused"), query: "fieldManager=me"},
	{name: "invalid for admission", method: "POST", path: cmPath, body: cmBody("invalid")},
	{name: "large", method: "POST", path: cmPath, body: `{"metadata":{"name":"large"},"data":{"a":"` + strings.Repeat("a", 140<<10) + `"}}`},
	{name: "too large", method: "POST", path: cmPath, body: `{"metadata":{"name":"huge"},"data":{"a":"` + strings.Repeat("a", 3<<20) + `"}}`, upstream: true},
	{name: "namespace", method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"n"}}`},
	{name: "pod", method: "POST", path: podPath, body: podBody("p")},
	{name: "bad pod", method: "POST", path: podPath, body: `{"metadata":{"name":"q"},"spec":{}}`},
	{name: "deployment", method: "POST", path: depPath, body: depBody("d")},
	{name: "service", method: "POST", path: svcPath, body: `{"metadata":{"name":"s"},"spec":{"clusterIP":"10.96.0.77","ports":[{"port":1},{"port":2,"name":"b"}]}}`},

	{name: "update", method: "PUT", path: cmPath + "/a", body: strings.Replace(cmBody("a"), `"v"`, `"w"`, 1)},
	{name: "same update", method: "PUT", path: cmPath + "/a", body: strings.Replace(cmBody("a"), `"v"`, `"w"`, 1)},
	{name: "more fields", method: "PUT", path: cmPath + "/a", body: `{"metadata":{"name":"a","labels":{"l":"m"}},"data":{"k":"w","l":"x"}}`},
	{name: "other manager", method: "PUT", path: cmPath + "/a", body: `{"metadata":{"name":"a","labels":{"l":"n"}},"data":{"k":"w","l":"x"}}`, query: "fieldManager=other"},
	{name: "stale update", method: "PUT", path: cmPath + "/a", body: `{"metadata":{"name":"a","resourceVersion":"1"}}`},
	{name: "other uid", method: "PUT", path: cmPath + "/a", body: `{"metadata":{"name":"a","uid":"u"}}`},
	{name: "other name", method: "PUT", path: cmPath + "/a", body: cmBody("b"), upstream: true},
	{name: "nameless", method: "PUT", path: cmPath + "/a", body: `{"metadata":{}}`, upstream: true},
	{name: "update in another namespace", method: "PUT", path: cmPath + "/a", body: `{"metadata":{"name":"a","namespace":"x"}}`, upstream: true},
	{name: "missing", method: "PUT", path: cmPath + "/none", body: cmBody("none")},
	{name: "managedFields cleared", method: "PUT", path: cmPath + "/a", body: `{"metadata":{"name":"a","managedFields":[]}}`},
	{name: "refused update", method: "PUT", path: cmPath + "/refused", body: cmBody("refused")},
	{name: "spoiled update", method: "PUT", path: cmPath + "/spoiled", body: strings.Replace(cmBody("spoiled"), `"v"`, `"w"`, 1)},
	{name: "lease by update", method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", body: leaseBody("l", 1)},
	{name: "lease again", method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", body: leaseBody("l", 2)},
	{name: "lease of another", method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", body: leaseBody("l", 3), as: updater},
	{name: "lease without the right to create", method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/default/leases/m", body: leaseBody("m", 1), as: updater},
	{name: "update of a deployment", method: "PUT", path: depPath + "/d", body: strings.Replace(depBody("d"), `"replicas":2`, `"replicas":3`, 1)},
	{name: "update of an immutable field", method: "PUT", path: depPath + "/d", body: strings.ReplaceAll(depBody("d"), `"a":"b"`, `"a":"c"`)},
	{name: "update of a namespace", method: "PUT", path: "/api/v1/namespaces/n", body: `{"metadata":{"name":"n","labels":{"a":"b"}}}`},
}

const ownerJSON = `{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"1"}`

func leaseBody(name string, transitions int) string {
	return fmt.Sprintf(
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":"o","leaseDurationSeconds":40,"leaseTransitions":%d,"renewTime":"2001-01-01T00:00:00.000000Z"}}`,
		name,
		transitions,
	)
}

// updater may do everything but create.
var updater = &user.DefaultInfo{Name: "updater"}

type withoutCreates struct{ authorizer.Authorizer }

func (w withoutCreates) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case a.GetUser().GetName() != updater.Name:
		return w.Authorizer.Authorize(ctx, a)
	case a.GetVerb() == "create":
		return authorizer.DecisionNoOpinion, fmt.Sprintf("%s %s of %s", a.GetVerb(), a.GetPath(), a.GetName()), nil
	default:
		return authorizer.DecisionAllow, "", nil
	}
}

// TestPlainWritesAreUpstreamsAnswers tells the same story to two servers: plainly,
// and with a parameter that means nothing, which sends every request to upstream's
// handlers. Status, headers and body of each answer are the same.
func TestPlainWritesAreUpstreamsAnswers(t *testing.T) {
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"} {
		for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			t.Run(form+" to "+accept, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { tellTwice(t, form, accept) }) // a bubble has one time for both
			})
		}
	}
}

func tellTwice(t *testing.T, form, accept string) {
	plain, plainWitness := witnessed(t)
	upstream, upstreamWitness := witnessed(t)
	for _, write := range writes {
		c := call{method: write.method, path: write.path, body: write.body, contentType: orDefault(write.form, "application/json"), accept: accept, acceptEncoding: "gzip", as: write.as}
		if form != "application/json" && !write.upstream {
			c.body, c.contentType = inProtobuf(t, write.body, write.path), form
		}
		c.path += "?" + write.query
		seen := plainWitness.upstream.Load()
		fast := c.do(t, plain)
		if took := plainWitness.upstream.Load() != seen; took && !write.upstream {
			t.Errorf("%s: upstream served it", write.name)
		}
		c.path += "&nothing=1"
		slow := c.do(t, upstream)
		compareAnswers(t, write.name, fast, slow)
	}
	if n := plainWitness.plain.Load(); n < 20 {
		t.Errorf("%d plain writes came to admission", n)
	}
	if n := upstreamWitness.plain.Load(); n > 0 {
		t.Errorf("%d plain writes where all should have been upstream's", n)
	}
}

func witnessed(t *testing.T) (*Server, *witness) {
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	w := &witness{Interface: config.Admission}
	config.Admission, config.Authorizer = w, withoutCreates{config.Authorizer}
	server, _ := startServer(t, config)
	w.plain.Store(0)
	w.upstream.Store(0)
	return server, w
}

// anyUID are the uids of objects and the names of token volumes, each server's own.
var anyUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|kube-api-access-[a-z0-9]{5}`)

func compareAnswers(t *testing.T, name string, fast, slow answer) {
	t.Helper()
	for _, header := range []http.Header{fast.header, slow.header} {
		header.Del("Audit-Id") // its own for each request
	}
	if fast.code != slow.code || !cmp.Equal(fast.header, slow.header) {
		t.Errorf("%s: %d %v, upstream %d %v", name, fast.code, fast.header, slow.code, slow.header)
	}
	unzip(t, &fast)
	unzip(t, &slow)
	if f, s := anyUID.ReplaceAllString(fast.body, "uid"), anyUID.ReplaceAllString(slow.body, "uid"); f != s {
		t.Errorf("%s: upstream (-), plain (+):\n%s", name, cmp.Diff(firstBytes(s), firstBytes(f)))
	}
}

// unzip undoes the compression of large answers.
func unzip(t *testing.T, a *answer) {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		return
	}
	r, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	a.body = string(text)
}

// inProtobuf is a JSON body in protobuf; the path tells the kind.
func inProtobuf(t *testing.T, body, path string) string {
	codecs := NewCodecs(kinds.NewScheme())
	gvk := corev1.SchemeGroupVersion.WithKind("")
	for _, kind := range kinds.All() {
		if strings.Contains(path+"/", "/"+kind.Plural+"/") && strings.Contains(path, kind.GroupVersionKind.Group) {
			gvk = kind.GroupVersionKind
		}
	}
	obj, _, err := codecs.UniversalDeserializer().Decode([]byte(body), &gvk, nil)
	if err != nil {
		t.Fatal(err, path)
	}
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	text, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, gvk.GroupVersion()), obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBodiesThatBreakOff are refused as upstream refuses them: nothing is stored.
func TestBodiesThatBreakOff(t *testing.T) {
	server, _ := newServer(t)
	send := func(query string) string {
		broken := io.MultiReader(strings.NewReader(cmBody("a")), iotest.ErrReader(io.ErrUnexpectedEOF))
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://in-process"+cmPath+query, broken)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		response, err := server.Transport(Caller{User: admin}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return fmt.Sprint(response.StatusCode, err, string(text))
	}
	if plain, upstream := send(""), send("?nothing=1"); plain != upstream || !strings.HasPrefix(plain, "500") {
		t.Errorf("plain %s, upstream %s", plain, upstream)
	}
	if got := (call{path: cmPath + "/a"}).do(t, server); got.code != 404 {
		t.Errorf("half a body was stored: %s", got.body)
	}
}
