package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// hosts has spec.hostPort in v1, which is kept, and spec.host and spec.port in v2.
const hosts = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hosts.stable.example.com}
spec:
  group: stable.example.com
  scope: Cluster
  names: {plural: hosts, singular: host, kind: Host, listKind: HostList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: %q, caBundle: %s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {hostPort: {type: string}}}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {host: {type: string}, port: {type: string, default: "80"}}}}}}}
`

const hostsPath = "/apis/stable.example.com/%s/hosts"

// conversionWebhook splits and joins hostPort, and counts how often it is asked.
func conversionWebhook(t *testing.T) (server *httptest.Server, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(raw.Raw); err != nil {
				t.Error(err)
			}
			if err := convertHost(u, review.Request.DesiredAPIVersion); err != nil {
				response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			}
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: u})
		}
		review.Request, review.Response = nil, response
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server, calls
}

func convertHost(u *unstructured.Unstructured, apiVersion string) error {
	spec, _, _ := unstructured.NestedStringMap(u.Object, "spec")
	next := map[string]any{}
	if strings.HasSuffix(apiVersion, "/v2") {
		host, port, ok := strings.Cut(spec["hostPort"], ":")
		if !ok {
			return fmt.Errorf("no port in %q", spec["hostPort"])
		}
		next["host"], next["port"] = host, port
	} else {
		next["hostPort"] = spec["host"] + ":" + spec["port"]
	}
	u.SetAPIVersion(apiVersion)
	u.Object["spec"] = next
	return nil
}

func defineHosts(t *testing.T, server *Server) (*apiextensionsv1.CustomResourceDefinition, *atomic.Int64) {
	t.Helper()
	webhook, calls := conversionWebhook(t)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	return define(t, server, fmt.Sprintf(hosts, webhook.URL, base64.StdEncoding.EncodeToString(bundle))), calls
}

func host(version, name, spec string) string {
	return `{"apiVersion":"stable.example.com/` + version + `","kind":"Host","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
}

func TestConversionWebhook(t *testing.T) {
	server := newCustomServer(t)
	_, calls := defineHosts(t, server)
	v1, v2 := fmt.Sprintf(hostsPath, "v1"), fmt.Sprintf(hostsPath, "v2")
	for _, name := range []string{"a", "b", "c"} {
		mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: v1, body: host("v1", name, `{"hostPort":"`+name+`:8080"}`)})
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls for the stored version", calls.Load())
	}
	list := mustDo[unstructured.UnstructuredList](t, server, call{path: v2})
	if diff := cmp.Diff(map[string]any{"host": "b", "port": "8080"}, list.Items[1].Object["spec"]); diff != "" || calls.Load() != 1 {
		t.Errorf("list after %d calls (-want +got):\n%s", calls.Load(), diff)
	}
	one := mustDo[unstructured.Unstructured](t, server, call{path: v2 + "/a"})
	if calls.Load() != 2 {
		t.Errorf("%d calls: the webhook may have changed since the list", calls.Load())
	}
	mustDo[unstructured.Unstructured](t, server, call{path: v2 + "/a?resourceVersion=0"})
	mustDo[unstructured.Unstructured](t, server, call{path: v1 + "/a"})
	if calls.Load() != 2 {
		t.Errorf("%d calls: one that was converted is converted again for whom any state will do", calls.Load())
	}
	mustDo[unstructured.Unstructured](t, server, call{method: "PATCH", path: v2 + "/a", contentType: patchTypeOf["merge"], body: `{"spec":{"port":"99"}}`})
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: v2, body: host("v2", "d", `{"host":"d"}`)})
	for name, want := range map[string]string{"a": "a:99", "d": "d:80"} {
		kept := mustDo[unstructured.Unstructured](t, server, call{path: v1 + "/" + name})
		if got, _, _ := unstructured.NestedString(kept.Object, "spec", "hostPort"); got != want {
			t.Errorf("%s is kept as %q, want %q", name, got, want)
		}
	}
	if one.GetAPIVersion() != "stable.example.com/v2" || one.GetUID() == "" {
		t.Errorf("one = %v", one)
	}
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: v1, body: host("v1", "bad", `{"hostPort":"nothing"}`)})
	if got := (call{path: v2 + "/bad"}).do(t, server); got.code != http.StatusInternalServerError || !strings.Contains(got.body, "conversion webhook for") {
		t.Errorf("an object that cannot be converted: %d %s", got.code, got.body)
	}
}

// TestBadCABundle: where no conversion is needed a webhook that cannot be called is in nobody's way, as the deletion of a namespace
// or of the definition. A definition has such a bundle since before they were judged.
func TestBadCABundle(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, fmt.Sprintf(hosts, "https://127.0.0.1:1", base64.StdEncoding.EncodeToString([]byte("not a certificate"))))
	v1, v2 := fmt.Sprintf(hostsPath, "v1"), fmt.Sprintf(hostsPath, "v2")
	a := host("v1", "a", `{"hostPort":"a:80"}`)
	for _, c := range []struct {
		call
		want int
	}{
		{call{method: "GET", path: v2}, http.StatusOK},
		{call{method: "POST", path: v1, body: a}, http.StatusCreated},
		{call{method: "GET", path: v1}, http.StatusOK},
		{call{method: "GET", path: v1 + "/a"}, http.StatusOK},
		{call{method: "PATCH", path: v1 + "/a", contentType: patchTypeOf["merge"], body: `{"spec":{"hostPort":"a:81"}}`}, http.StatusOK},
		{call{method: "PATCH", path: v1 + "/a?fieldManager=m&force=true", contentType: patchTypeOf["apply"], body: a}, http.StatusOK},
		{call{method: "GET", path: v2}, http.StatusInternalServerError},
		{call{method: "POST", path: v2, body: host("v2", "b", `{"host":"b"}`)}, http.StatusInternalServerError},
		{call{method: "DELETE", path: v1}, http.StatusOK},
		{call{method: "GET", path: v2}, http.StatusOK},
	} {
		if got := c.do(t, server); got.code != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.code, got.body)
		}
	}
}

// TestConversionWebhookThatIsGone: who wants the newest state hears of it, and others have what it once said.
func TestConversionWebhookThatIsGone(t *testing.T) {
	server := newCustomServer(t)
	webhook, _ := conversionWebhook(t)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	define(t, server, fmt.Sprintf(hosts, webhook.URL, base64.StdEncoding.EncodeToString(bundle)))
	v1, v2 := fmt.Sprintf(hostsPath, "v1"), fmt.Sprintf(hostsPath, "v2")
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: v1, body: host("v1", "a", `{"hostPort":"a:8080"}`)})
	mustDo[unstructured.Unstructured](t, server, call{path: v2 + "/a"})
	webhook.Close()
	for path, code := range map[string]int{
		v2 + "/a": http.StatusInternalServerError, v2 + "/a?resourceVersion=0": http.StatusOK, v2: http.StatusOK, v1 + "/a": http.StatusOK,
	} {
		if got := (call{path: path}).do(t, server); got.code != code {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
}

// TestADryRunConverts: what cannot be converted to the version that is kept is refused in a dry run, as the write is.
func TestADryRunConverts(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, fmt.Sprintf(hosts, "https://127.0.0.1:1/convert", "Cg=="))
	for _, query := range []string{"", "?dryRun=All"} {
		got := call{method: "POST", path: fmt.Sprintf(hostsPath, "v2") + query, body: host("v2", "a", `{"host":"a"}`)}.do(t, server)
		if got.code != http.StatusInternalServerError || !strings.Contains(got.body, "conversion webhook for stable.example.com/v2") {
			t.Errorf("%q: %d %s", query, got.code, got.body)
		}
	}
	if got := (call{method: "POST", path: fmt.Sprintf(hostsPath, "v1") + "?dryRun=All", body: host("v1", "a", `{"hostPort":"a:1"}`)}).do(t, server); got.code != http.StatusCreated {
		t.Errorf("in the version that is kept: %d %s", got.code, got.body)
	}
}

// TestNeverEstablished: a definition that is not established is neither served nor shown.
func TestNeverEstablished(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	d.Status.Conditions[1].Status = apiextensionsv1.ConditionFalse
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name + "/status", body: asJSON(t, d)})
	if got := (call{method: "POST", path: crontabPath, body: crontab("a", `{}`)}).do(t, server); got.code != http.StatusNotFound {
		t.Errorf("an instance: %d %s", got.code, got.body)
	}
	if got := (call{path: "/apis/stable.example.com"}).do(t, server); got.code != http.StatusNotFound {
		t.Errorf("discovery: %d %s", got.code, got.body)
	}
}

// TestStorageVersionMigration: a write that changes nothing keeps the object under the
// new storage version, once.
func TestStorageVersionMigration(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	created := mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"image":"x"}`)})
	d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true
	d = mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name, body: asJSON(t, d)})
	if diff := cmp.Diff([]string{"v1", "v1beta1"}, d.Status.StoredVersions); diff != "" {
		t.Error(diff)
	}
	migrated := mustDo[unstructured.Unstructured](t, server, call{method: "PUT", path: crontabPath + "/a", body: asJSON(t, created)})
	if migrated.GetResourceVersion() == created.GetResourceVersion() {
		t.Error("nothing was written")
	}
	again := mustDo[unstructured.Unstructured](t, server, call{method: "PUT", path: crontabPath + "/a", body: asJSON(t, migrated)})
	if again.GetResourceVersion() != migrated.GetResourceVersion() {
		t.Error("written again")
	}
}

// lagging is a replica that stops applying.
type lagging struct {
	storage.Log
	stuck atomic.Pointer[state.Root]
}

func (l *lagging) Root() *state.Root {
	if stuck := l.stuck.Load(); stuck != nil {
		return stuck
	}
	return l.Log.Root()
}

func (l *lagging) ReadIndex(ctx context.Context) (*state.Root, error) { return l.Log.ReadIndex(ctx) }

// TestEstablishedElsewhere: a replica that has not seen the definition yet serves it to
// whoever has seen it on another.
func TestEstablishedElsewhere(t *testing.T) {
	log := &lagging{Log: raftstoretest.NewLocal(state.Options{})}
	server := newCustomServerOver(t, log)
	list := call{path: crontabPath}
	if got := list.do(t, server); got.code != http.StatusNotFound {
		t.Fatalf("before: %d %s", got.code, got.body)
	}
	log.stuck.Store(log.Log.Root())
	define(t, server, crontabs)
	if got := list.do(t, server); got.code != http.StatusOK {
		t.Errorf("after: %d %s", got.code, got.body)
	}
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{}`)})
}
