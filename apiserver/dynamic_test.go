package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/client-go/discovery/cached/memory"
	dynamicclient "k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// laterServer is a client's way to a server that is built after it.
type laterServer struct{ server *Server }

func (l *laterServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return l.server.Transport(Caller{User: admin}).RoundTrip(r)
}

// newDynamicServer is newServer with webhooks and policies, which read informers
// over the API itself.
func newDynamicServer(t *testing.T) *Server {
	t.Helper()
	return newConfiguredServer(t, nil)
}

// newConfiguredServer is newDynamicServer with what an administrator's file tells plugins.
func newConfiguredServer(t *testing.T, configuration func(plugin string) []byte) *Server {
	t.Helper()
	t.Cleanup(generic.SetPolicyRefreshIntervalForTests(20 * time.Millisecond))
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	documents, err := discovery.New(discovery.Config{Kinds: config.Kinds, Version: "0"})
	if err != nil {
		t.Fatal(err)
	}
	config.Discovery = documents
	later := &laterServer{}
	to := &rest.Config{Host: "https://in-process", QPS: -1, Transport: later}
	client, err := kubernetes.NewForConfig(to)
	if err != nil {
		t.Fatal(err)
	}
	anyKind, err := dynamicclient.NewForConfig(to)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, start := range []func(){
		func() { factory.Core().V1().Namespaces().Informer() },
		func() { factory.Core().V1().ConfigMaps().Informer() },
		func() { factory.Admissionregistration().V1().MutatingWebhookConfigurations().Informer() },
		func() { factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer() },
		func() { factory.Admissionregistration().V1().MutatingAdmissionPolicies().Informer() },
		func() { factory.Admissionregistration().V1().MutatingAdmissionPolicyBindings().Informer() },
		func() { factory.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer() },
		func() { factory.Admissionregistration().V1().ValidatingAdmissionPolicyBindings().Informer() },
	} {
		start()
	}
	last, err := dynamic.New(dynamic.Config{
		Store: config.Storage, Informers: factory, Client: client, Dynamic: anyKind, Authorizer: config.Authorizer, Stop: t.Context().Done(),
		Dial:          new(net.Dialer).DialContext,
		Mapper:        restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		Configuration: configuration,
	})
	if err != nil {
		t.Fatal(err)
	}
	config.Admission, err = admission.New(admission.Config{Store: config.Storage, Authorizer: config.Authorizer, Last: last})
	if err != nil {
		t.Fatal(err)
	}
	if later.server, err = New(config); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSyncWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	mustDo[corev1.Namespace](t, later.server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"default"}}`})
	mustDo[corev1.ServiceAccount](t, later.server, call{method: "POST", path: "/api/v1/namespaces/default/serviceaccounts", body: `{"metadata":{"name":"default"}}`})
	checker := dynamic.NewTypeChecker(config.Storage, client.Discovery(), restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- checker.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return later.server
}

// hook is a webhook behind a real HTTPS socket. It remembers what it was asked.
type hook struct {
	t      *testing.T
	server *httptest.Server
	ca     []byte
	// answer fills in the response; the default allows.
	answer func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse)

	mu    sync.Mutex
	asked []*admissionv1.AdmissionRequest
	// credentials are what the last request showed.
	credentials string
}

// newHook listens with a certificate for a Service.
func newHook(t *testing.T, answer func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse)) *hook {
	t.Helper()
	h := &hook{t: t, answer: answer}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"hook.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	h.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	h.server = httptest.NewUnstartedServer(h)
	h.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		h.t.Error(err)
		return
	}
	h.mu.Lock()
	h.asked = append(h.asked, review.Request)
	h.credentials = r.Header.Get("Authorization")
	h.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if h.answer != nil {
		h.answer(review.Request, review.Response)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil && r.Context().Err() == nil {
		h.t.Error(err)
	}
}

// requests returns what the hook was asked about objects of the name.
func (h *hook) requests(name string) []*admissionv1.AdmissionRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	var about []*admissionv1.AdmissionRequest
	for _, r := range h.asked {
		if r.Name == name {
			about = append(about, r)
		}
	}
	return about
}

func (h *hook) client() string {
	return fmt.Sprintf(`{"url":%q,"caBundle":%q}`, h.server.URL+"/", base64.StdEncoding.EncodeToString(h.ca))
}

// configure registers a webhook and waits until it is in force: a ConfigMap that
// only asks whether it is. more are further fields of the webhook.
func (h *hook) configure(t *testing.T, server *Server, kind, name, rules, more string) {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	body := fmt.Sprintf(`{"metadata":{"name":%q},"webhooks":[{"name":"%s.example.com","clientConfig":%s,"rules":%s,"sideEffects":"None","admissionReviewVersions":["v1"]%s}]}`,
		name, name, h.client(), rules, more)
	mustDo[metav1.PartialObjectMetadata](t, server, call{method: "POST", path: registrationPath + kind, body: body})
	eventually(t, name+" is in force", func() bool {
		mark := "mark-" + name
		call{method: "POST", path: cmPath + "?dryRun=All", body: cmBody(mark)}.do(t, server)
		return len(h.requests(mark)) > 0
	})
}

const (
	registrationPath = "/apis/admissionregistration.k8s.io/v1/"
	everyConfigMap   = `[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["*"]}]`
)

// eventually asks until the answer is yes: informers work in real time here, since a
// socket does not belong into a bubble.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ask(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func deny(words string) func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse) {
	return func(q *admissionv1.AdmissionRequest, a *admissionv1.AdmissionResponse) {
		if strings.HasPrefix(q.Name, "bad") {
			a.Allowed, a.Result = false, &metav1.Status{Message: words, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
		}
	}
}

func patch(ops string) func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse) {
	return func(_ *admissionv1.AdmissionRequest, a *admissionv1.AdmissionResponse) {
		kind := admissionv1.PatchTypeJSONPatch
		a.Patch, a.PatchType = []byte(ops), &kind
	}
}

func TestValidatingWebhooks(t *testing.T) {
	server := newDynamicServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("bad-old")})
	h := newHook(t, func(q *admissionv1.AdmissionRequest, a *admissionv1.AdmissionResponse) {
		deny("not today")(q, a)
		a.Warnings = []string{"careful"}
	})
	h.configure(t, server, "validatingwebhookconfigurations", "guard", everyConfigMap, "")
	denied := refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: `admission webhook "guard.example.com" denied the request: not today`}
	for name, c := range map[string]call{
		"create": {method: "POST", path: cmPath, body: cmBody("bad")},
		"update": {method: "PUT", path: cmPath + "/bad-old", body: `{"metadata":{"name":"bad-old"},"data":{"k":"w"}}`},
		"patch":  {method: "PATCH", path: cmPath + "/bad-old", contentType: patchTypeOf["merge"], body: `{"data":{"k":"w"}}`},
		"delete": {method: "DELETE", path: cmPath + "/bad-old"},
	} {
		denied.check(t, name, c.do(t, server))
	}
	if asked := h.requests("bad-old"); len(asked) != 3 {
		t.Errorf("three refused requests asked %d times", len(asked))
	}
	good := call{method: "POST", path: cmPath, body: cmBody("good")}.do(t, server)
	if good.code != 201 || !strings.Contains(good.header.Get("Warning"), "careful") {
		t.Errorf("good: %d, warning %q", good.code, good.header.Get("Warning"))
	}
	asked := h.requests("good")
	if len(asked) != 1 || asked[0].UserInfo.Username != "admin" || asked[0].Operation != admissionv1.Create || !strings.Contains(string(asked[0].Object.Raw), `"kind":"ConfigMap"`) {
		t.Errorf("asked %+v", asked)
	}
	call{method: "DELETE", path: cmPath + "/good"}.do(t, server)
	if asked := h.requests("good"); len(asked) != 2 || asked[1].Operation != admissionv1.Delete || len(asked[1].OldObject.Raw) == 0 {
		t.Errorf("asked %+v about the deletion", asked)
	}
	// What refuses everything can still be taken away.
	mustDo[metav1.Status](t, server, call{method: "DELETE", path: registrationPath + "validatingwebhookconfigurations/guard"})
	eventually(t, "the webhook is gone", func() bool { return call{method: "DELETE", path: cmPath + "/bad-old"}.do(t, server).code == 200 })
}

func TestMutatingWebhooks(t *testing.T) {
	server := newDynamicServer(t)
	first := newHook(t, func(q *admissionv1.AdmissionRequest, a *admissionv1.AdmissionResponse) {
		if strings.Contains(string(q.Object.Raw), `"second"`) {
			patch(`[{"op":"add","path":"/data/seen","value":"second"}]`)(q, a)
			return
		}
		patch(`[{"op":"add","path":"/data/first","value":"yes"}]`)(q, a)
	})
	second := newHook(t, patch(`[{"op":"add","path":"/data/second","value":"yes"}]`))
	first.configure(t, server, "mutatingwebhookconfigurations", "a", everyConfigMap, `"reinvocationPolicy":"IfNeeded"`)
	second.configure(t, server, "mutatingwebhookconfigurations", "b", everyConfigMap, "")
	cm := mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("x")})
	if cm.Data["first"] != "yes" || cm.Data["second"] != "yes" || cm.Data["seen"] != "second" || cm.Data["k"] != "v" {
		t.Errorf("data = %v", cm.Data)
	}
	if n := len(second.requests("x")); n != 1 {
		t.Errorf("the second was asked %d times", n)
	}
	broken := newHook(t, patch(`[{"op":"remove","path":"/data/none"}]`))
	broken.configure(t, server, "mutatingwebhookconfigurations", "c", everyConfigMap, "")
	refusal{code: 500, reason: metav1.StatusReasonInternalError, messageHas: "Unable to remove nonexistent key"}.check(t, "a patch that does not fit",
		call{method: "POST", path: cmPath, body: cmBody("y")}.do(t, server))
}

func TestWebhooksThatFail(t *testing.T) {
	server := newDynamicServer(t)
	release := make(chan struct{})
	slow := newHook(t, func(q *admissionv1.AdmissionRequest, _ *admissionv1.AdmissionResponse) {
		if q.Name == "slow" {
			<-release
		}
	})
	t.Cleanup(func() { close(release) }) // before the socket closes, which waits for it
	slow.configure(t, server, "validatingwebhookconfigurations", "slow", everyConfigMap, `"timeoutSeconds":1,"matchConditions":[{"name":"not-all","expression":"!request.name.startsWith('skip')"}]`)
	refusal{code: 500, reason: metav1.StatusReasonInternalError, messageHas: "context deadline exceeded"}.check(t, "timeout",
		call{method: "POST", path: cmPath, body: cmBody("slow")}.do(t, server))
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("skip-me")})
	if len(slow.requests("skip-me")) != 0 {
		t.Error("the condition did not match, and it was asked")
	}
	gone := newHook(t, nil)
	gone.configure(t, server, "validatingwebhookconfigurations", "open", everyConfigMap, `"failurePolicy":"Ignore"`)
	gone.server.Close()
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("fails-open")})
	effects := newHook(t, nil)
	effects.configure(t, server, "validatingwebhookconfigurations", "closed", everyConfigMap, "")
	effects.server.Close()
	refusal{code: 500, reason: metav1.StatusReasonInternalError, messageHas: `failed calling webhook "closed.example.com"`}.check(t, "fail closed",
		call{method: "POST", path: cmPath, body: cmBody("fails-closed")}.do(t, server))
}

func TestWebhooksConnectAndServices(t *testing.T) {
	server := newDynamicServer(t)
	h := newHook(t, func(q *admissionv1.AdmissionRequest, a *admissionv1.AdmissionResponse) {
		if q.Operation == admissionv1.Connect {
			a.Allowed, a.Result = false, &metav1.Status{Message: "no visitors: " + q.SubResource}
		}
	})
	_, port, _ := net.SplitHostPort(h.server.Listener.Addr().String())
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"hook"},"spec":{"ports":[{"port":443,"targetPort":8443}]}}`})
	writeSlice(t, server, "hook", port)
	body := fmt.Sprintf(`{"metadata":{"name":"door"},"webhooks":[{"name":"door.example.com","clientConfig":{"service":{"namespace":"default","name":"hook"},"caBundle":%q},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods/*","configmaps"],"operations":["*"]}],"sideEffects":"None","admissionReviewVersions":["v1"]}]}`, base64.StdEncoding.EncodeToString(h.ca))
	mustDo[metav1.PartialObjectMetadata](t, server, call{method: "POST", path: registrationPath + "validatingwebhookconfigurations", body: body})
	eventually(t, "door is in force", func() bool {
		call{method: "POST", path: cmPath + "?dryRun=All", body: cmBody("mark")}.do(t, server)
		return len(h.requests("mark")) > 0
	})
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	for _, path := range []string{"/p/exec?command=sh&stdout=true", "/p/attach?stdout=true", "/p/portforward?ports=80"} {
		got := call{method: "POST", path: podPath + path}.do(t, server)
		refusal{code: 400, messageHas: "no visitors: "}.check(t, path, withoutReason(got))
	}
	if got := (call{path: podPath + "/p/log"}).do(t, server); strings.Contains(got.body, "no visitors") {
		t.Errorf("reading a log is no connection: %s", got.body)
	}
}

// withoutReason forgets what a webhook chose to leave out.
func withoutReason(a answer) answer {
	a.status.Reason = ""
	return a
}

// writeSlice says that a socket of this machine is a pod of a Service, which no
// client may say.
func writeSlice(t *testing.T, server *Server, service, port string) {
	t.Helper()
	var number int32
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service, Namespace: "default", UID: "u", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: &number}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
			{Addresses: []string{"127.0.0.1"}},
		},
	}
	table := server.config.Storage.Table(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"))
	if _, err := table.Write(t.Context(), "default", service, func(*storage.View) (*storage.Change, error) {
		return &storage.Change{Object: slice}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestDryRunAndWebhooks(t *testing.T) {
	server := newDynamicServer(t)
	h := newHook(t, nil)
	body := fmt.Sprintf(
		`{"metadata":{"name":"effects"},"webhooks":[{"name":"effects.example.com","clientConfig":%s,"rules":%s,"sideEffects":"Some","admissionReviewVersions":["v1"]}]}`,
		h.client(),
		everyConfigMap,
	)
	got := call{method: "POST", path: registrationPath + "validatingwebhookconfigurations", body: body}.do(t, server)
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "sideEffects"}.check(t, "v1 wants to know", got)
	h.configure(t, server, "validatingwebhookconfigurations", "none", everyConfigMap, "")
	call{method: "POST", path: cmPath + "?dryRun=All", body: cmBody("dry")}.do(t, server)
	if asked := h.requests("dry"); len(asked) != 1 || asked[0].DryRun == nil || !*asked[0].DryRun {
		t.Errorf("asked %+v", asked)
	}
}

func TestValidatingPolicies(t *testing.T) {
	server := newDynamicServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: `{"metadata":{"name":"limits"},"data":{"max":"2"}}`})
	policy := `{"metadata":{"name":"few"},"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},
		"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE","UPDATE"]}]},
		"variables":[{"name":"max","expression":"int(params.data.max)"}],
		"validations":[{"expression":"object.spec.replicas <= variables.max","messageExpression":"'at most ' + string(variables.max)","reason":"Forbidden"}]}}`
	binding := `{"metadata":{"name":"few"},"spec":{"policyName":"few","validationActions":["Deny"],"paramRef":{"name":"limits","namespace":"default","parameterNotFoundAction":"Deny"}}}`
	mustDo[admissionregistrationv1.ValidatingAdmissionPolicy](t, server, call{method: "POST", path: registrationPath + "validatingadmissionpolicies", body: policy})
	mustDo[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, server, call{method: "POST", path: registrationPath + "validatingadmissionpolicybindings", body: binding})
	many := strings.Replace(depBody("many"), `"replicas":2`, `"replicas":3`, 1)
	var got answer
	eventually(t, "the policy is in force", func() bool {
		got = call{method: "POST", path: depPath + "?dryRun=All", body: many}.do(t, server)
		return got.code != 201
	})
	refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: `ValidatingAdmissionPolicy 'few' with binding 'few' denied request: at most 2`}.check(t, "too many", got)
	eventually(t, "the policy is checked", func() bool {
		s := mustDo[admissionregistrationv1.ValidatingAdmissionPolicy](t, server, call{path: registrationPath + "validatingadmissionpolicies/few"}).Status
		return s.ObservedGeneration == 1 && s.TypeChecking != nil && len(s.TypeChecking.ExpressionWarnings) == 0
	})
	// A patch merges what the checker noted with what others own.
	few := mustDo[admissionregistrationv1.ValidatingAdmissionPolicy](
		t,
		server,
		call{method: "PATCH", path: registrationPath + "validatingadmissionpolicies/few", contentType: patchTypeOf["merge"], body: `{"metadata":{"labels":{"a":"b"}}}`},
	)
	if entry := managed(few.ManagedFields, "validatingadmissionpolicy-status"); entry == nil || string(entry.FieldsV1.Raw) != `{"f:status":{"f:observedGeneration":{},"f:typeChecking":{}}}` ||
		entry.Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("the status belongs to %+v", entry)
	}
	wrong := strings.NewReplacer(`"few"`, `"wrong"`, "object.spec.replicas", "object.spec.replicaz").Replace(policy)
	mustDo[admissionregistrationv1.ValidatingAdmissionPolicy](t, server, call{method: "POST", path: registrationPath + "validatingadmissionpolicies", body: wrong})
	eventually(t, "the wrong policy is checked", func() bool {
		s := mustDo[admissionregistrationv1.ValidatingAdmissionPolicy](t, server, call{path: registrationPath + "validatingadmissionpolicies/wrong"}).Status
		return s.TypeChecking != nil && len(s.TypeChecking.ExpressionWarnings) == 1 && strings.Contains(s.TypeChecking.ExpressionWarnings[0].Warning, "undefined field 'replicaz'")
	})
	mustDo[metav1.PartialObjectMetadata](t, server, call{method: "POST", path: depPath, body: depBody("two")})
	mustDo[corev1.ConfigMap](t, server, call{method: "PUT", path: cmPath + "/limits", body: `{"metadata":{"name":"limits"},"data":{"max":"5"}}`})
	eventually(t, "the parameter has changed", func() bool { return call{method: "POST", path: depPath, body: many}.do(t, server).code == 201 })
	call{method: "DELETE", path: cmPath + "/limits"}.do(t, server)
	eventually(t, "the parameter is missed", func() bool {
		return strings.Contains(call{method: "POST", path: depPath + "?dryRun=All", body: depBody("three")}.do(t, server).status.Message, "no params found for policy binding")
	})
}

func TestMutatingPolicies(t *testing.T) {
	server := newDynamicServer(t)
	policy := `{"metadata":{"name":"label"},"spec":{"reinvocationPolicy":"Never",
		"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]},
		"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{metadata: Object.metadata{labels: {\"by\": request.userInfo.username}}}"}},
			{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: \"add\", path: \"/data/extra\", value: \"1\"}]"}}]}}`
	binding := `{"metadata":{"name":"label"},"spec":{"policyName":"label"}}`
	mustDo[admissionregistrationv1.MutatingAdmissionPolicy](t, server, call{method: "POST", path: registrationPath + "mutatingadmissionpolicies", body: policy})
	mustDo[admissionregistrationv1.MutatingAdmissionPolicyBinding](t, server, call{method: "POST", path: registrationPath + "mutatingadmissionpolicybindings", body: binding})
	var got answer
	eventually(t, "the policy is in force", func() bool {
		got = call{method: "POST", path: cmPath + "?dryRun=All", body: cmBody("x")}.do(t, server)
		return strings.Contains(got.body, `"by":"admin"`)
	})
	if !strings.Contains(got.body, `"extra":"1"`) || !strings.Contains(got.body, `"k":"v"`) {
		t.Errorf("%s", got.body)
	}
}
