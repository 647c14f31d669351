package apiserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatIsNotServed: within a group that is, clients read a Status; beyond, plain text.
func TestWhatIsNotServed(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	notFound := refusal{code: 404, reason: metav1.StatusReasonNotFound, messageHas: "the server could not find the requested resource"}
	notAllowed := refusal{code: 405, reason: metav1.StatusReasonMethodNotAllowed, messageHas: "the server does not allow this method on the requested resource"}
	for _, c := range []struct {
		method, path string
		want         refusal
	}{
		{"GET", "/api/v1/foos", notFound},
		{"GET", "/apis/apps/v1/foos", notFound},
		{"GET", "/apis/apps/v2/deployments", notFound},
		{"GET", cmPath + "/a/status", notFound},
		{"GET", "/api/v1/configmaps/a", notFound},
		{"GET", "/api/v1/namespaces/default/nodes", notFound},
		{"GET", "/api/v1/watch/foos", notFound},
		{"GET", cmPath + "/a/b/c", notFound},
		{"GET", "/api/v1/namespaces/default/nodes/n", notFound},
		{"GET", "/api/v2/namespaces/default/configmaps", notFound},
		{"GET", "/api/v1/namespaces/default/namespaces", notFound},
		{"GET", "/api/v1/namespaces/default/namespaces/default", notFound},
		{"PUT", cmPath, notAllowed},
		{"POST", cmPath + "/a", notAllowed},
		{"PATCH", cmPath, notAllowed},
		{"OPTIONS", cmPath + "/a", notAllowed},
		{"DELETE", "/api/v1/configmaps", notAllowed},
		{"DELETE", "/api/v1/namespaces", notAllowed},
		{"GET", "/api/v1/namespaces/default/finalize", notAllowed},
		{"GET", podPath + "/p/binding", notAllowed},
		{"DELETE", depPath + "/d/scale", notAllowed},
		{"PUT", podPath + "/p/exec", notAllowed},
	} {
		got := call{method: c.method, path: c.path, body: "{}"}.do(t, server)
		c.want.check(t, c.method+" "+c.path, got)
		if d := got.status.Details; d == nil || d.Kind != "" || d.Name != "" {
			t.Errorf("%s %s: details = %+v, want none", c.method, c.path, d)
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: `Name parameter invalid: "..": may not be '..'`}.
			check(t, method+" ..", call{method: method, path: cmPath + "/..", body: cmBody("a")}.do(t, server))
	}
	for _, path := range []string{"/apis/example.org/v1/gadgets", "/nothing", "//api/v1/pods"} {
		if got := (call{path: path}).do(t, server); got.code != http.StatusNotFound || !strings.HasPrefix(got.body, "404 page not found") {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound, messageHas: `deployments.apps "a" not found`, name: "a", group: "apps", kind: "deployments"}.
		check(t, "an object", call{path: depPath + "/a"}.do(t, server))
}

// TestDeprecatedKindsWarn on every verb.
func TestDeprecatedKindsWarn(t *testing.T) {
	server, _ := newServer(t)
	const path = "/api/v1/namespaces/default/endpoints"
	const want = `299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`
	for _, c := range []call{
		{method: "POST", path: path, body: `{"metadata":{"name":"e"}}`}, {path: path}, {path: path + "/e"},
		{method: "PATCH", path: path + "/e", contentType: patchTypeOf["merge"], body: `{"metadata":{"labels":{"a":"b"}}}`}, {method: "DELETE", path: path + "/e"},
	} {
		if got := c.do(t, server); got.header.Get("Warning") != want {
			t.Errorf("%s: %d, warning %q", c.method, got.code, got.header.Get("Warning"))
		}
	}
	if got := (call{path: cmPath}).do(t, server); got.header.Get("Warning") != "" {
		t.Errorf("config maps warn: %s", got.header.Get("Warning"))
	}
	wantDeprecated(t, server, `group="",removed_release="",resource="endpoints",subresource="",version="v1"`)
}

// wantDeprecated: requests for these, and for nothing else that is deprecated, were counted.
func wantDeprecated(t *testing.T, server *Server, labels ...string) {
	t.Helper()
	const name = "apiserver_requested_deprecated_apis"
	want := "# HELP " + name + " Always 1: what is deprecated and was asked for, and the release that will not have it.\n# TYPE " + name + " gauge\n"
	for _, l := range labels {
		want += name + "{" + l + "} 1\n"
	}
	if err := testutil.CollectAndCompare(server.config.Requests, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
}

// TestFinalizers: their names, and what the update that removes the last one answers.
func TestFinalizers(t *testing.T) {
	server, _ := newServer(t)
	named := func(name string) string {
		return strings.Replace(cmBody("a"), `"name":"a"`, `"name":"a","finalizers":["`+name+`"]`, 1)
	}
	wrong := refusal{code: 422, reason: metav1.StatusReasonInvalid,
		messageHas: `metadata.finalizers[0]: Invalid value: "keep": name is neither a standard finalizer name nor is it fully qualified`}
	wrong.check(t, "create", call{method: "POST", path: cmPath, body: named("keep")}.do(t, server))
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: named("example.com/keep")})
	patch := func(finalizers string) call {
		return call{method: "PATCH", path: cmPath + "/a", contentType: patchTypeOf["merge"], body: `{"metadata":{"finalizers":` + finalizers + `}}`}
	}
	wrong.check(t, "update", patch(`["keep"]`).do(t, server))
	mustDo[corev1.ConfigMap](t, server, call{method: "DELETE", path: cmPath + "/a"})
	for _, query := range []string{"?dryRun=All", ""} {
		last := patch(`[]`)
		last.path += query
		got := mustDo[corev1.ConfigMap](t, server, last)
		if len(got.Finalizers) != 0 || got.DeletionTimestamp == nil || got.Name != "a" {
			t.Errorf("last update %s = %+v", query, got.ObjectMeta)
		}
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound, name: "a", kind: "configmaps"}.check(t, "afterwards", call{path: cmPath + "/a"}.do(t, server))
}

// TestMetadataThroughStatus: a status update takes metadata along, as upstream does for kinds
// that do not say otherwise.
func TestMetadataThroughStatus(t *testing.T) {
	server, _ := newServer(t)
	meta := `{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/keep"],"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"1"}]}}`
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`})
	got := mustDo[corev1.Service](t, server, call{method: "PATCH", path: svcPath + "/s/status", contentType: patchTypeOf["merge"], body: meta})
	if len(got.Finalizers) != 1 || len(got.OwnerReferences) != 1 || got.Labels["a"] != "b" {
		t.Errorf("service: %+v", got.ObjectMeta)
	}
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	pod := mustDo[corev1.Pod](t, server, call{method: "PATCH", path: podPath + "/p/status", contentType: patchTypeOf["merge"], body: meta})
	if len(pod.Finalizers) != 1 || len(pod.OwnerReferences) != 0 {
		t.Errorf("pod: %+v", pod.ObjectMeta)
	}
}

// TestUnscheduledPods: options are judged before anybody looks for a node.
func TestUnscheduledPods(t *testing.T) {
	server, _ := newServer(t)
	pod := mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	if got := (call{path: podPath + "/p/log"}).do(t, server); got.code != http.StatusNoContent || got.body != "" {
		t.Errorf("log: %d %s", got.code, got.body)
	}
	for path, want := range map[string]refusal{
		"/p/log?container=x":            {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "container x is not valid for pod p"},
		"/p/log?tailLines=-1":           {code: 422, reason: metav1.StatusReasonInvalid, messageHas: "tailLines: Invalid value: -1: must be greater than or equal to 0"},
		"/p/log?sinceSeconds=0":         {code: 422, reason: metav1.StatusReasonInvalid, messageHas: "sinceSeconds: Invalid value: 0: must be greater than 0"},
		"/p/exec?command=a&container=x": {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "container x is not valid for pod p"},
		"/p/attach?container=x":         {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "container x is not valid for pod p"},
		"/p/exec?command=a":             {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "pod p does not have a host assigned"},
	} {
		want.check(t, path, call{path: podPath + path}.do(t, server))
	}
	bind := func(meta string) answer {
		return call{method: "POST", path: podPath + "/p/binding?dryRun=All", body: `{"metadata":{"name":"p"` + meta + `},"target":{"name":"n"}}`}.do(t, server)
	}
	for _, meta := range []string{`,"uid":"another"`, `,"resourceVersion":"1"`} {
		refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: "Precondition failed"}.check(t, meta, bind(meta))
	}
	if got := bind(`,"uid":"` + string(pod.UID) + `","resourceVersion":"` + pod.ResourceVersion + `"`); got.code != http.StatusCreated {
		t.Errorf("binding the pod that is meant: %d %s", got.code, got.body)
	}
}
