package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestMain takes away the pause that upstream makes after each error it logs: it is
// kept in a global, and measured from real time inside bubbles of fake time.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // no other way to a quiet clock
	os.Exit(m.Run())
}

// call is a request as it goes over the wire. Empty fields mean: GET, JSON, the
// administrator.
type call struct {
	method, path, body  string
	accept, contentType string
	acceptEncoding      string
	as                  user.Info
	upgrade             bool
}

// answer is what came back, with the Status in it if it is one.
type answer struct {
	code   int
	header http.Header
	body   string
	status metav1.Status
}

func (c call) do(t testing.TB, server *Server) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), orDefault(c.method, http.MethodGet), "https://in-process"+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", orDefault(c.accept, runtime.ContentTypeJSON))
	r.Header.Set("Content-Type", orDefault(c.contentType, runtime.ContentTypeJSON))
	if c.acceptEncoding != "" {
		r.Header.Set("Accept-Encoding", c.acceptEncoding)
	}
	if c.upgrade {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
	}
	who := c.as
	if who == nil {
		who = admin
	}
	response, err := server.Transport(Caller{User: who}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{code: response.StatusCode, header: response.Header, body: string(body)}
	if strings.Contains(strings.ReplaceAll(a.body, ": ", ":"), `"kind":"Status"`) && strings.HasPrefix(a.body, "{") {
		if err := json.Unmarshal(body, &a.status); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func orDefault(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (a answer) cause(kind metav1.CauseType) (metav1.StatusCause, bool) {
	if a.status.Details != nil {
		for _, c := range a.status.Details.Causes {
			if c.Type == kind {
				return c, true
			}
		}
	}
	return metav1.StatusCause{}, false
}

// refusal is what a client is told, in short.
type refusal struct {
	code        int
	reason      metav1.StatusReason
	name, group string
	kind        string
	messageHas  string
}

// check compares an answer with a refusal. Every refusal is a whole Status.
func (want refusal) check(t *testing.T, what string, got answer) {
	t.Helper()
	s := got.status
	if got.code != want.code || s.Reason != want.reason || !strings.Contains(s.Message, want.messageHas) {
		t.Errorf("%s: %d %s %q, want %d %s with %q (%s)", what, got.code, s.Reason, s.Message, want.code, want.reason, want.messageHas, firstBytes(got.body))
		return
	}
	if int(s.Code) != got.code || s.Status != metav1.StatusFailure || s.APIVersion != "v1" {
		t.Errorf("%s: status = %+v", what, s)
	}
	if want.kind == "" {
		return
	}
	if d := s.Details; d == nil || d.Name != want.name || d.Group != want.group || d.Kind != want.kind {
		t.Errorf("%s: details = %+v, want %s %s/%s", what, d, want.name, want.group, want.kind)
	}
}

func firstBytes(s string) string { return s[:min(len(s), 300)] }

const (
	cmPath  = "/api/v1/namespaces/default/configmaps"
	podPath = "/api/v1/namespaces/default/pods"
	depPath = "/apis/apps/v1/namespaces/default/deployments"
	svcPath = "/api/v1/namespaces/default/services"
)

func cmBody(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"k":"v"}}`
}

func podBody(name string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
}

func depBody(name string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"` + name + `"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},` +
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
}

// mustDo performs a call that has to succeed and returns the object.
func mustDo[T any](t testing.TB, server *Server, c call) *T {
	t.Helper()
	a := c.do(t, server)
	if a.code >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %d %s", c.method, c.path, a.code, a.body)
	}
	into := new(T)
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatal(err)
	}
	return into
}

var patchTypeOf = map[string]string{
	"json": string(types.JSONPatchType), "merge": string(types.MergePatchType),
	"strategic": string(types.StrategicMergePatchType), "apply": string(types.ApplyYAMLPatchType),
}
