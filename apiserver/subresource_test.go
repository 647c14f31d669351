package apiserver

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatusAndSpecStayApart(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	status := `{"metadata":{"name":"p","labels":{"by":"status"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"other"}]},"status":{"phase":"Running"}}`
	got := mustDo[corev1.Pod](t, server, call{method: "PUT", path: podPath + "/p/status", body: status})
	if got.Status.Phase != corev1.PodRunning || got.Spec.NodeName != "" || got.Spec.Containers[0].Image != "i" {
		t.Errorf("after status: %+v", got)
	}
	main := strings.Replace(podBody("p"), `"spec"`, `"status":{"phase":"Failed"},"spec"`, 1)
	got = mustDo[corev1.Pod](t, server, call{method: "PATCH", path: podPath + "/p", contentType: patchTypeOf["merge"], body: `{"status":{"phase":"Failed"},"metadata":{"labels":{"x":"y"}}}`})
	if got.Status.Phase != corev1.PodRunning || got.Labels["x"] != "y" {
		t.Errorf("after main: %+v", got)
	}
	refusal{code: 409, reason: metav1.StatusReasonConflict}.check(t, "stale status",
		call{method: "PUT", path: podPath + "/p/status", body: strings.Replace(main, `"name":"p"`, `"name":"p","resourceVersion":"1"`, 1)}.do(t, server))
	refusal{code: 404, reason: metav1.StatusReasonNotFound, name: "q", kind: "pods"}.check(t, "missing",
		call{method: "PUT", path: podPath + "/q/status", body: strings.ReplaceAll(status, `"p"`, `"q"`)}.do(t, server))
	if got := mustDo[corev1.Pod](t, server, call{path: podPath + "/p/status"}); got.Status.Phase != corev1.PodRunning {
		t.Errorf("get status: %+v", got)
	}
}

func TestScale(t *testing.T) {
	server, _ := newServer(t)
	mustDo[appsv1.Deployment](t, server, call{method: "POST", path: depPath, body: depBody("d")})
	path := depPath + "/d/scale"
	s := mustDo[autoscalingv1.Scale](t, server, call{path: path})
	if s.Kind != "Scale" || s.APIVersion != "autoscaling/v1" || s.Spec.Replicas != 2 || s.Status.Selector != "a=b" || s.UID == "" {
		t.Errorf("scale = %+v", s)
	}
	updated := mustDo[autoscalingv1.Scale](t, server, call{method: "PUT", path: path, body: `{"metadata":{"name":"d","resourceVersion":"` + s.ResourceVersion + `"},"spec":{"replicas":4}}`})
	if updated.Spec.Replicas != 4 || updated.ResourceVersion == s.ResourceVersion {
		t.Errorf("updated = %+v", updated)
	}
	patched := mustDo[autoscalingv1.Scale](t, server, call{method: "PATCH", path: path, contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":0}}`})
	if patched.Spec.Replicas != 0 {
		t.Errorf("patched = %+v", patched)
	}
	if d := mustDo[appsv1.Deployment](t, server, call{path: depPath + "/d"}); *d.Spec.Replicas != 0 || d.Generation != 3 {
		t.Errorf("deployment = %+v", d)
	}
	for name, c := range map[string]struct {
		body string
		want refusal
	}{
		"stale":    {`{"metadata":{"name":"d","resourceVersion":"` + s.ResourceVersion + `"},"spec":{"replicas":1}}`, refusal{code: 409, reason: metav1.StatusReasonConflict}},
		"negative": {`{"metadata":{"name":"d"},"spec":{"replicas":-1}}`, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "spec.replicas: Invalid value: -1: must be greater than or equal to 0"}},
		"other":    {`{"metadata":{"name":"e"},"spec":{"replicas":1}}`, refusal{code: 400, reason: metav1.StatusReasonBadRequest}},
	} {
		c.want.check(t, name, call{method: "PUT", path: path, body: c.body}.do(t, server))
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound, group: "apps", kind: "deployments", name: "none"}.
		check(t, "missing", call{path: depPath + "/none/scale"}.do(t, server))
}

func TestBinding(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	bound := func(name, target string) answer {
		return call{method: "POST", path: podPath + "/" + name + "/binding", body: `{"metadata":{"name":"` + name + `"},"target":` + target + `}`}.do(t, server)
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound}.check(t, "missing", bound("q", `{"name":"n"}`))
	refusal{code: 422, reason: metav1.StatusReasonInvalid}.check(t, "no target", bound("p", `{"kind":"Node"}`))
	mustDo[corev1.Pod](t, server, call{method: "PATCH", path: podPath + "/p/status", contentType: patchTypeOf["merge"], body: `{"status":{"nominatedNodeName":"m"}}`})
	if got := bound("p", `{"kind":"Node","name":"n"}`); got.code != 201 || got.status.Status != metav1.StatusSuccess {
		t.Fatalf("%d %s", got.code, got.body)
	}
	pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"})
	if pod.Spec.NodeName != "n" || len(pod.Status.Conditions) != 1 || pod.Status.Conditions[0].Type != corev1.PodScheduled {
		t.Errorf("pod = %+v", pod)
	}
	if pod.Status.NominatedNodeName != "" {
		t.Errorf("a placed pod is still promised %s", pod.Status.NominatedNodeName)
	}
	refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: `pod p is already assigned to node "n"`}.check(t, "twice", bound("p", `{"name":"m"}`))
	loose := call{method: "POST", path: strings.TrimSuffix(podPath, "pods") + "bindings", body: `{"metadata":{"name":"p"},"target":{"name":"m"}}`}
	refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: "already assigned"}.check(t, "twice, by name in the body", loose.do(t, server))
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("r")})
	loose.body = `{"metadata":{"name":"r"},"target":{"name":"m"}}`
	if got := loose.do(t, server); got.code != 201 {
		t.Errorf("by name in the body: %d %s", got.code, got.body)
	}
}

func TestEviction(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	bind(t, server, "p", "n")
	evict := func(name, more string) answer {
		body := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + name + `"}` + more + `}`
		return call{method: "POST", path: podPath + "/" + name + "/eviction", body: body}.do(t, server)
	}
	if got := evict("p", `,"deleteOptions":{"dryRun":["All"]}`); got.code != 201 {
		t.Errorf("dry run: %d %s", got.code, got.body)
	}
	if pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"}); pod.DeletionTimestamp != nil {
		t.Error("a dry run evicted")
	}
	refusal{code: 409, reason: metav1.StatusReasonConflict}.check(t, "other uid", evict("p", `,"deleteOptions":{"preconditions":{"uid":"x"}}`))
	if got := evict("p", `,"deleteOptions":{"gracePeriodSeconds":3}`); got.code != 201 || got.status.Status != metav1.StatusSuccess {
		t.Errorf("%d %s", got.code, got.body)
	}
	if pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"}); pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 3 {
		t.Errorf("pod = %+v", pod.ObjectMeta)
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound}.check(t, "missing", evict("q", ""))
}

// TestDryRunsStoreNothing runs every writing verb dry and looks for traces.
func TestDryRunsStoreNothing(t *testing.T) {
	server, _ := newServer(t)
	mustDo[appsv1.Deployment](t, server, call{method: "POST", path: depPath, body: depBody("d")})
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"other"}}`})
	before := server.config.Storage.Revision()
	for _, c := range []call{
		{method: "POST", path: depPath, body: depBody("e")},
		{method: "POST", path: svcPath, body: `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`},
		{method: "PUT", path: depPath + "/d", body: strings.Replace(depBody("d"), `"replicas":2`, `"replicas":3`, 1)},
		{method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":3}}`},
		{method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["strategic"], body: `{"spec":{"replicas":3}}`},
		{method: "PATCH", path: depPath + "/d", contentType: patchTypeOf["json"], body: `[{"op":"replace","path":"/spec/replicas","value":3}]`},
		{method: "PATCH", path: depPath + "/f?fieldManager=m", contentType: patchTypeOf["apply"], body: depBody("f")},
		{method: "PUT", path: depPath + "/d/scale", body: `{"metadata":{"name":"d"},"spec":{"replicas":3}}`},
		{method: "PATCH", path: depPath + "/d/status", contentType: patchTypeOf["merge"], body: `{"status":{"replicas":3}}`},
		{method: "PUT", path: leasePath + "/l", body: `{"metadata":{"name":"l"}}`},
		{method: "POST", path: podPath + "/p/binding", body: `{"metadata":{"name":"p"},"target":{"name":"n"}}`},
		{method: "POST", path: podPath + "/p/eviction", body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`},
		{method: "DELETE", path: depPath + "/d"},
		{method: "DELETE", path: depPath},
		{method: "PUT", path: "/api/v1/namespaces/default/finalize", body: `{"metadata":{"name":"default"}}`},
		{method: "DELETE", path: "/api/v1/namespaces/other"},
	} {
		c.path += map[bool]string{true: "&", false: "?"}[strings.Contains(c.path, "?")] + "dryRun=All"
		if got := c.do(t, server); got.code >= 300 {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.code, got.body)
		}
		if after := server.config.Storage.Revision(); after != before {
			t.Errorf("%s %s: revision %d to %d", c.method, c.path, before, after)
			before = after
		}
	}
}

// TestFormatOfNames: kubectl and dashboards find the name of a row by it, where upstream says so.
func TestFormatOfNames(t *testing.T) {
	server, _ := newServer(t)
	mustDo[appsv1.Deployment](t, server, call{method: "POST", path: "/apis/apps/v1/namespaces/default/deployments", body: `{"metadata":{"name":"d"},"spec":{"replicas":0,
		"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`})
	for path, want := range map[string]string{
		"/api/v1/events": "name", "/apis/apps/v1/deployments": "name",
		"/apis/storagemigration.k8s.io/v1/storageversionmigrations": "", "/apis/apps/v1/namespaces/default/deployments/d/scale": "",
	} {
		table := mustDo[metav1.Table](t, server, call{path: path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"})
		for _, c := range table.ColumnDefinitions {
			if c.Name == "Name" && c.Format != want {
				t.Errorf("%s: %q, want %q", path, c.Format, want)
			}
		}
	}
}
