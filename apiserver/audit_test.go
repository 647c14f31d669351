package apiserver

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// records keeps what is recorded, by a policy.
type records struct {
	policy audit.PolicyRuleEvaluator
	mu     sync.Mutex
	events []*auditapi.Event
}

func (r *records) Sink() audit.Sink                  { return r }
func (r *records) Policy() audit.PolicyRuleEvaluator { return r.policy }

// ProcessEvents implements audit.Sink.
func (r *records) ProcessEvents(events ...*auditapi.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.events = append(r.events, e.DeepCopy())
	}
	return true
}

// take returns what was recorded since the last time.
func (r *records) take() []*auditapi.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.events
	r.events = nil
	return taken
}

func newRecords(t *testing.T, rules string) *records {
	t.Helper()
	p, err := policy.LoadPolicyFromBytes([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n" + rules))
	if err != nil {
		t.Fatal(err)
	}
	return &records{policy: policy.NewPolicyRuleEvaluator(p)}
}

func newAuditedServer(t *testing.T, rules string, services ...Service) (*Server, *records) {
	t.Helper()
	r := newRecords(t, rules)
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Audit, config.Services = r, services
	server, _ := startServer(t, config)
	r.take()
	return server, r
}

// one returns the only event, which tells of a whole request.
func one(t *testing.T, events []*auditapi.Event) *auditapi.Event {
	t.Helper()
	if len(events) != 1 || events[0].Stage != auditapi.StageResponseComplete {
		t.Fatalf("%d events: %s", len(events), inJSON(events))
	}
	return events[0]
}

const wholeAnswers = "omitStages: [RequestReceived]\nrules: [{level: RequestResponse}]"

// TestEveryWayIsAudited: also the ways that do not go through upstream's handlers.
func TestEveryWayIsAudited(t *testing.T) {
	server, recorded := newAuditedServer(t, wholeAnswers)
	const canary = "canary-5f1d"
	body := strings.Replace(cmBody("a"), `"v"}`, `"`+canary+`"}`, 1)
	for _, c := range []struct {
		call
		verb              string
		request, response bool
	}{
		{call{method: "POST", path: cmPath, body: body}, "create", true, true},
		{call{method: "POST", path: cmPath + "?pretty=1", body: strings.Replace(body, `"a"`, `"b"`, 1)}, "create", true, true},
		{call{path: cmPath + "/a"}, "get", false, true},
		{call{path: cmPath + "/a", accept: protobufType}, "get", false, true},
		{call{path: cmPath + "/a?pretty=1"}, "get", false, true},
		{call{path: cmPath}, "list", false, true},
		{call{path: cmPath + "?resourceVersion=0", accept: protobufType}, "list", false, true},
		{call{method: "PUT", path: cmPath + "/a", body: strings.Replace(body, canary, canary+"2", 1)}, "update", true, true},
		{call{method: "PATCH", path: cmPath + "/a", contentType: "application/merge-patch+json", body: `{"data":{"l":"` + canary + `"}}`}, "patch", true, true},
		{call{method: "DELETE", path: cmPath + "/a"}, "delete", false, false},
	} {
		got := c.do(t, server)
		if got.code >= 300 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, got.code, got.body)
		}
		e := one(t, recorded.take())
		if e.Verb != c.verb || e.User.Username != "admin" || int(e.ResponseStatus.Code) != got.code || e.ObjectRef.Resource != "configmaps" {
			t.Errorf("%s %s: %s", c.method, c.path, inJSON(e))
		}
		if string(e.AuditID) != got.header.Get("Audit-Id") || e.RequestURI != c.path {
			t.Errorf("%s: %s %s, answered with %s", e.RequestURI, e.AuditID, c.path, got.header.Get("Audit-Id"))
		}
		if in := e.RequestObject != nil && strings.Contains(string(e.RequestObject.Raw), canary); in != c.request {
			t.Errorf("%s %s: the request is recorded: %v", c.verb, c.path, in)
		}
		if in := e.ResponseObject != nil && strings.Contains(string(e.ResponseObject.Raw), canary); in != c.response {
			t.Errorf("%s %s: the answer is recorded: %v", c.verb, c.path, in)
		}
		if e.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("%s: %v", c.verb, e.Annotations)
		}
	}
}

// TestDeprecationIsRecorded: the audit log says that a kind is deprecated, as upstream's does.
func TestDeprecationIsRecorded(t *testing.T) {
	server, recorded := newAuditedServer(t, wholeAnswers)
	for path, want := range map[string]string{"/api/v1/endpoints": "true", "/api/v1/configmaps": ""} {
		call{path: path}.do(t, server)
		if got := one(t, recorded.take()).Annotations["k8s.io/deprecated"]; got != want {
			t.Errorf("%s is deprecated: %q, want %q", path, got, want)
		}
	}
}

func TestManagedFieldsAreLeftOut(t *testing.T) {
	server, recorded := newAuditedServer(t, "omitManagedFields: true\n"+wholeAnswers)
	call{method: "POST", path: cmPath, body: cmBody("a")}.do(t, server)
	for _, path := range []string{cmPath + "/a", cmPath, cmPath + "?resourceVersion=0"} {
		recorded.take()
		if got := (call{path: path}).do(t, server); !strings.Contains(got.body, "managedFields") {
			t.Errorf("%s: the client's answer lost them: %s", path, got.body)
		}
		e := one(t, recorded.take())
		if answer := string(e.ResponseObject.Raw); strings.Contains(answer, "managedFields") || !strings.Contains(answer, `"a"`) {
			t.Errorf("%s: %s", path, answer)
		}
	}
}

// TestSecretsStayOut of what is recorded, when the policy says so.
func TestSecretsStayOut(t *testing.T) {
	server, recorded := newAuditedServer(t, "rules: [{level: Metadata}]")
	const path, canary = "/api/v1/namespaces/default/secrets", "Y2FuYXJ5LTVmMWQ="
	body := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"` + canary + `"}}`
	for _, c := range []call{
		{method: "POST", path: path, body: body}, {path: path + "/s"}, {path: path}, {method: "PUT", path: path + "/s", body: body},
		{method: "PATCH", path: path + "/s", contentType: "application/merge-patch+json", body: `{"data":{"l":"` + canary + `"}}`},
		{method: "DELETE", path: path + "/s"},
	} {
		if got := c.do(t, server); got.code >= 300 {
			t.Fatalf("%d %s", got.code, got.body)
		}
		events := recorded.take()
		if len(events) != 2 || events[0].Stage != auditapi.StageRequestReceived || events[1].ObjectRef.Name != "s" && c.path != path {
			t.Errorf("%s", inJSON(events))
		}
		if strings.Contains(inJSON(events), canary) {
			t.Errorf("%s %s tells the secret", c.method, c.path)
		}
	}
}

func TestRefusalsAreAudited(t *testing.T) {
	server, recorded := newAuditedServer(t, wholeAnswers)
	call{path: cmPath + "/a", as: &user.DefaultInfo{Name: "jane"}}.do(t, server)
	if e := one(t, recorded.take()); e.ResponseStatus.Code != http.StatusForbidden || e.Annotations["authorization.k8s.io/decision"] != "forbid" || e.User.Username != "jane" {
		t.Errorf("forbidden: %s", inJSON(e))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cmPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	const bearer = "canary-token"
	r.Header.Set("Authorization", "Bearer "+bearer)
	server.ServeHTTP(&discard{header: http.Header{}}, r)
	e := recorded.take()
	if len(e) != 1 || e[0].Stage != auditapi.StageResponseStarted || e[0].ResponseStatus.Code != http.StatusUnauthorized || strings.Contains(inJSON(e), bearer) {
		t.Errorf("unauthorized: %s", inJSON(e))
	}
}

func TestImpersonationIsAudited(t *testing.T) {
	server, recorded := newAuditedServer(t, wholeAnswers)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cmPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Impersonate-User", "jane")
	r.Header.Set("Impersonate-Group", "system:masters")
	r.TLS = adminConnection(t)
	server.ServeHTTP(&discard{header: http.Header{}}, r)
	e := one(t, recorded.take())
	if e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != "jane" || !slices.Contains(e.ImpersonatedUser.Groups, "system:masters") || e.User.Username == "jane" {
		t.Errorf("%s", inJSON(e))
	}
}

// TestWatchesAreAuditedWhenTheyBegin and when they end; and they still stream.
func TestWatchesAreAuditedWhenTheyBegin(t *testing.T) {
	server, recorded := newAuditedServer(t, wholeAnswers)
	client := clientFor(t, server)
	w, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := recorded.take(); len(e) != 1 || e[0].Stage != auditapi.StageResponseStarted || e[0].Verb != "watch" {
		t.Errorf("%s", inJSON(e))
	}
	call{method: "POST", path: cmPath, body: cmBody("a")}.do(t, server)
	if e := <-w.ResultChan(); e.Object == nil {
		t.Error("nothing came")
	}
	w.Stop()
}

// TestPartsAreNotAudited among each other, but what people ask of them is, and what somebody asks as another.
func TestPartsAreNotAudited(t *testing.T) {
	fine := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	noJane := func(u user.Info) bool { return u.GetName() != "jane" }
	server, recorded := newAuditedServer(t, wholeAnswers,
		Service{Prefix: "/part/", Handler: fine, Allow: noJane, Traffic: Parts}, Service{Prefix: "/backup/", Handler: fine, Allow: noJane, Traffic: Streams})
	call{path: "/part/x"}.do(t, server)
	if e := recorded.take(); len(e) > 0 {
		t.Errorf("%s", inJSON(e))
	}
	call{path: "/backup/x"}.do(t, server)
	started := recorded.take()
	if len(started) == 0 || started[0].RequestURI != "/backup/x" || started[0].User.Username != "admin" {
		t.Errorf("%s", inJSON(started))
	}
	for _, path := range []string{"/backup/x", "/part/x"} {
		call{path: path, as: &user.DefaultInfo{Name: "jane"}}.do(t, server)
		refused := recorded.take()
		if len(refused) == 0 || refused[len(refused)-1].ResponseStatus.Code != http.StatusForbidden ||
			refused[len(refused)-1].Annotations["authorization.k8s.io/decision"] != "forbid" {
			t.Errorf("%s: who is refused: %s", path, inJSON(refused))
		}
	}
}
