package apiserver

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeleteAnswers(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	for name, c := range map[string]struct {
		query, body string
		want        refusal
	}{
		"uid":        {"", `{"preconditions":{"uid":"other"}}`, refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: "the UID in the precondition (other) does not match the UID in record"}},
		"version":    {"", `{"preconditions":{"resourceVersion":"1"}}`, refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record"}},
		"both":       {"", `{"orphanDependents":true,"propagationPolicy":"Foreground"}`, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "propagationPolicy"}},
		"propagator": {"?propagationPolicy=Sideways", "", refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "propagationPolicy"}},
	} {
		c.want.check(t, name, call{method: "DELETE", path: cmPath + "/a" + c.query, body: c.body}.do(t, server))
	}
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("b")})
	got := call{method: "DELETE", path: cmPath + "/b?dryRun=All"}.do(t, server)
	if got.code != 200 || (call{path: cmPath + "/b"}).do(t, server).code != 200 {
		t.Errorf("dry run: %d %s", got.code, got.body)
	}
	uid := mustDo[corev1.ConfigMap](t, server, call{path: cmPath + "/b"}).UID
	got = call{method: "DELETE", path: cmPath + "/b", body: `{"preconditions":{"uid":"` + string(uid) + `"}}`}.do(t, server)
	d := got.status.Details
	if got.code != 200 || got.status.Status != metav1.StatusSuccess || d == nil || d.Name != "b" || d.Kind != "configmaps" || d.UID != uid {
		t.Errorf("gone: %d %s", got.code, got.body)
	}
	refusal{code: 404, reason: metav1.StatusReasonNotFound, name: "b", kind: "configmaps"}.
		check(t, "again", call{method: "DELETE", path: cmPath + "/b"}.do(t, server))
}

func TestSystemClassesStay(t *testing.T) {
	server, _ := newServer(t)
	const path = "/apis/scheduling.k8s.io/v1/priorityclasses"
	for _, body := range []string{`{"metadata":{"name":"system-node-critical"},"value":2000001000}`, `{"metadata":{"name":"mine"},"value":7}`} {
		mustDo[schedulingv1.PriorityClass](t, server, call{method: "POST", path: path, body: body})
	}
	want := refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: "this is a system priority class and cannot be deleted"}
	want.check(t, "one", call{method: "DELETE", path: path + "/system-node-critical"}.do(t, server))
	want.check(t, "all", call{method: "DELETE", path: path}.do(t, server))
	if got := (call{method: "DELETE", path: path + "/mine"}).do(t, server); got.code != 200 && got.code != 404 {
		t.Errorf("another class: %d %s", got.code, got.body)
	}
	if got := (call{path: path + "/system-node-critical"}).do(t, server); got.code != 200 {
		t.Errorf("after all: %d %s", got.code, got.body)
	}
}

func TestDeleteOptionsComeInEveryForm(t *testing.T) {
	server, _ := newServer(t)
	for name, c := range map[string]call{
		"empty":    {},
		"query":    {path: "?gracePeriodSeconds=0&propagationPolicy=Background"},
		"v1":       {body: `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`},
		"meta":     {body: `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":0}`},
		"yaml":     {body: "propagationPolicy: Background\n", contentType: "application/yaml"},
		"no type":  {body: `{}`},
		"of group": {body: `{"kind":"DeleteOptions","apiVersion":"apps/v1"}`},
	} {
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
		c.method, c.path = "DELETE", cmPath+"/a"+c.path
		if got := c.do(t, server); got.code != 200 {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
}

func TestPodsLeaveGracefully(t *testing.T) {
	server, _ := newServer(t)
	for _, name := range []string{"pending", "running"} {
		mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody(name)})
	}
	bind(t, server, "running", "node-1")
	if got := (call{method: "DELETE", path: podPath + "/pending"}).do(t, server); got.code != 200 || (call{path: podPath + "/pending"}).do(t, server).code != 404 {
		t.Errorf("an unscheduled pod: %d %s", got.code, got.body)
	}
	pod := mustDo[corev1.Pod](t, server, call{method: "DELETE", path: podPath + "/running"})
	if pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 30 || pod.Generation != 2 {
		t.Errorf("marked = %+v", pod.ObjectMeta)
	}
	longer := mustDo[corev1.Pod](t, server, call{method: "DELETE", path: podPath + "/running?gracePeriodSeconds=60"})
	if *longer.DeletionGracePeriodSeconds != 30 || longer.ResourceVersion != pod.ResourceVersion {
		t.Errorf("a longer grace: %+v", longer.ObjectMeta)
	}
	shorter := mustDo[corev1.Pod](t, server, call{method: "DELETE", path: podPath + "/running?gracePeriodSeconds=5"})
	if *shorter.DeletionGracePeriodSeconds != 5 {
		t.Errorf("a shorter grace: %+v", shorter.ObjectMeta)
	}
	got := call{method: "DELETE", path: podPath + "/running", body: `{"gracePeriodSeconds":0,"preconditions":{"uid":"other"}}`}.do(t, server)
	refusal{code: 409, reason: metav1.StatusReasonConflict}.check(t, "confirmed for another pod", got)
	got = call{method: "DELETE", path: podPath + "/running", body: `{"gracePeriodSeconds":0,"preconditions":{"uid":"` + string(pod.UID) + `"}}`}.do(t, server)
	if got.code != 200 || (call{path: podPath + "/running"}).do(t, server).code != 404 {
		t.Errorf("confirmed: %d %s", got.code, got.body)
	}
}

// Operators act on the mark, such as LeaderWorkerSet's, which makes a group anew when its leader is deleted.
func TestTheMarkIsShownBeforeTheEnd(t *testing.T) {
	for how, c := range map[string]struct {
		node string
		end  func(name string) call
	}{
		"without node": {"", func(name string) call { return call{method: "DELETE", path: podPath + "/" + name} }},
		"forced": {"node-1", func(name string) call {
			return call{method: "DELETE", path: podPath + "/" + name + "?gracePeriodSeconds=0"}
		}},
		"evicted": {"", func(name string) call {
			return call{method: "POST", path: podPath + "/" + name + "/eviction", body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + name + `"}}`}
		}},
		"with others": {"", func(string) call { return call{method: "DELETE", path: podPath} }},
	} {
		server, _ := newServer(t)
		made := mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
		if c.node != "" {
			bind(t, server, "p", c.node)
			made = mustDo[corev1.Pod](t, server, call{path: podPath + "/p"})
		}
		if got := c.end("p").do(t, server); got.code/100 != 2 {
			t.Fatalf("%s: %d %s", how, got.code, got.body)
		}
		seen := openWatch(t, server, podPath+"?watch=1&timeoutSeconds=5&resourceVersion="+made.ResourceVersion)
		for _, want := range []string{"MODIFIED", "DELETED"} {
			var event struct {
				Type   string
				Object corev1.Pod
			}
			if !seen.scan.Scan() || json.Unmarshal(seen.scan.Bytes(), &event) != nil {
				t.Fatalf("%s: %s", how, seen.scan.Text())
			}
			grace := event.Object.DeletionGracePeriodSeconds
			if event.Type != want || event.Object.DeletionTimestamp == nil || grace == nil || *grace != 0 {
				t.Errorf("%s: %s with %+v, want %s", how, event.Type, event.Object.ObjectMeta, want)
			}
		}
	}
}

func bind(t *testing.T, server *Server, pod, node string) {
	t.Helper()
	got := call{method: "POST", path: podPath + "/" + pod + "/binding", body: `{"metadata":{"name":"` + pod + `"},"target":{"kind":"Node","name":"` + node + `"}}`}.do(t, server)
	if got.code != 201 {
		t.Fatalf("binding: %d %s", got.code, got.body)
	}
}

func TestFinalizersHold(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: strings.Replace(cmBody("a"), `"name":"a"`, `"name":"a","finalizers":["x.io/y"]`, 1)})
	marked := mustDo[corev1.ConfigMap](t, server, call{method: "DELETE", path: cmPath + "/a"})
	if marked.DeletionTimestamp == nil || marked.Name != "a" {
		t.Errorf("marked = %+v", marked)
	}
	if again := mustDo[corev1.ConfigMap](t, server, call{method: "DELETE", path: cmPath + "/a"}); again.ResourceVersion != marked.ResourceVersion {
		t.Errorf("again: %s to %s", marked.ResourceVersion, again.ResourceVersion)
	}
	patch := func(body string) answer {
		return call{method: "PATCH", path: cmPath + "/a", contentType: patchTypeOf["merge"], body: body}.do(t, server)
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "no new finalizers can be added if the object is being deleted"}.
		check(t, "a new finalizer", patch(`{"metadata":{"finalizers":["x.io/y","x.io/z"]}}`))
	if got := patch(`{"metadata":{"deletionTimestamp":null}}`); got.code != 200 || !strings.Contains(got.body, "deletionTimestamp") {
		t.Errorf("a deletion taken back: %d %s", got.code, got.body)
	}
	if got := patch(`{"metadata":{"finalizers":null}}`); got.code != 200 || !strings.Contains(got.body, `"name":"a"`) {
		t.Errorf("the last finalizer: %d %s", got.code, got.body)
	}
	if got := (call{path: cmPath + "/a"}).do(t, server); got.code != 404 {
		t.Errorf("after the last finalizer: %d", got.code)
	}
}

func TestPropagation(t *testing.T) {
	server, _ := newServer(t)
	for policy, want := range map[string]string{"Foreground": "foregroundDeletion", "Orphan": "orphan", "Background": ""} {
		name := strings.ToLower(policy)
		mustDo[appsv1.Deployment](t, server, call{method: "POST", path: depPath, body: depBody(name)})
		got := call{method: "DELETE", path: depPath + "/" + name + "?propagationPolicy=" + policy}.do(t, server)
		if got.code != 200 || (want != "" && !strings.Contains(got.body, `"finalizers":["`+want+`"]`)) || (want == "" && got.status.Status != metav1.StatusSuccess) {
			t.Errorf("%s: %d %s", policy, got.code, got.body)
		}
	}
}

func TestDeleteCollection(t *testing.T) {
	server, _ := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: strings.Replace(cmBody(name), `"name"`, `"labels":{"n":"`+name+`"},"name"`, 1)})
	}
	remaining := func() string {
		return names(mustDo[corev1.ConfigMapList](t, server, call{path: cmPath}).Items)
	}
	for _, c := range []struct{ query, want string }{
		{"?dryRun=All", "a b c"},
		{"?labelSelector=n%3Db", "a c"},
		{"?fieldSelector=metadata.name%3Dc", "a"},
		{"", ""},
	} {
		deleted := mustDo[corev1.ConfigMapList](t, server, call{method: "DELETE", path: cmPath + c.query})
		if got := remaining(); got != c.want {
			t.Errorf("%q: left %q, want %q; deleted %d", c.query, got, c.want, len(deleted.Items))
		}
	}
}

// TestDeleteCollectionAsOf: what came after the revision that the client names stays.
func TestDeleteCollectionAsOf(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	listed := mustDo[corev1.ConfigMapList](t, server, call{path: cmPath})
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("b")})
	mustDo[corev1.ConfigMapList](t, server, call{method: "DELETE", path: cmPath + "?resourceVersion=" + listed.ResourceVersion})
	if left := names(mustDo[corev1.ConfigMapList](t, server, call{path: cmPath}).Items); left != "b" {
		t.Errorf("left %q, want b", left)
	}
}

// TestNamespacesFinalize: a namespace stays until spec.finalizers is empty, which
// only the finalize subresource can do.
func TestNamespacesFinalize(t *testing.T) {
	server, _ := newServer(t)
	const path = "/api/v1/namespaces/n"
	made := mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"n"}}`})
	if len(made.Spec.Finalizers) != 1 || made.Spec.Finalizers[0] != corev1.FinalizerKubernetes || made.Status.Phase != corev1.NamespaceActive {
		t.Errorf("made = %+v", made)
	}
	gone := mustDo[corev1.Namespace](t, server, call{method: "DELETE", path: path})
	if gone.Status.Phase != corev1.NamespaceTerminating || gone.DeletionTimestamp == nil || gone.DeletionGracePeriodSeconds != nil {
		t.Errorf("deleted = %+v", gone)
	}
	kept := mustDo[corev1.Namespace](t, server, call{method: "PUT", path: path, body: `{"metadata":{"name":"n"},"spec":{"finalizers":[]}}`})
	if len(kept.Spec.Finalizers) != 1 {
		t.Errorf("a plain update emptied finalizers: %+v", kept.Spec)
	}
	mustDo[corev1.Namespace](t, server, call{method: "PUT", path: path + "/finalize", body: `{"metadata":{"name":"n"},"spec":{"finalizers":[]}}`})
	if got := (call{path: path}).do(t, server); got.code != 404 {
		t.Errorf("after finalize: %d %s", got.code, got.body)
	}
}

// TestDeletionsThatAnswerWithTheObject: these kinds do upstream; a client that decodes the answer gets what it expects.
func TestDeletionsThatAnswerWithTheObject(t *testing.T) {
	server, _ := newServer(t)
	storage, devices := "/apis/storage.k8s.io/v1/", "/apis/resource.k8s.io/v1/"
	for path, body := range map[string]string{
		storage + "storageclasses":                            `{"metadata":{"name":"x"},"provisioner":"example.com/p"}`,
		storage + "csidrivers":                                `{"metadata":{"name":"x"},"spec":{}}`,
		storage + "csinodes":                                  `{"metadata":{"name":"x"},"spec":{"drivers":[]}}`,
		storage + "volumeattachments":                         `{"metadata":{"name":"x"},"spec":{"attacher":"example.com","nodeName":"n","source":{"persistentVolumeName":"v"}}}`,
		devices + "deviceclasses":                             `{"metadata":{"name":"x"},"spec":{}}`,
		devices + "namespaces/default/resourceclaims":         `{"metadata":{"name":"x"},"spec":{}}`,
		devices + "namespaces/default/resourceclaimtemplates": `{"metadata":{"name":"x"},"spec":{"spec":{}}}`,
		devices + "resourceslices":                            `{"metadata":{"name":"x"},"spec":{"driver":"example.com","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`,
	} {
		if got := (call{method: "POST", path: path, body: body}).do(t, server); got.code != 201 {
			t.Errorf("%s: %d %s", path, got.code, got.body)
			continue
		}
		got := call{method: "DELETE", path: path + "/x"}.do(t, server)
		if got.code != 200 || got.status.Kind == "Status" || !strings.Contains(string(got.body), `"uid"`) {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
}

// TestDeletionsAreShownAsUpstream: a pod that ends at once shows when it did, a definition
// changes as little as a namespace does, and nothing depends on an event.
func TestDeletionsAreShownAsUpstream(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	pod := mustDo[corev1.Pod](t, server, call{method: "DELETE", path: podPath + "/p"})
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != 0 || pod.Generation != 2 {
		t.Errorf("the deleted pod: %+v", pod.ObjectMeta)
	}
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	mustDo[metav1.PartialObjectMetadata](t, server, call{method: "POST", path: definitions, body: `{"metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`})
	for range 2 {
		marked := mustDo[metav1.PartialObjectMetadata](t, server, call{method: "DELETE", path: definitions + "/foos.example.com", body: `{"propagationPolicy":"Orphan"}`})
		if marked.DeletionTimestamp == nil || marked.DeletionGracePeriodSeconds != nil || marked.Generation != 1 || len(marked.Finalizers) != 1 {
			t.Errorf("the marked definition: %+v", marked.ObjectMeta)
		}
	}
	const events = "/api/v1/namespaces/default/events"
	for _, policy := range []string{"Orphan", "Foreground"} {
		mustDo[corev1.Event](t, server, call{method: "POST", path: events, body: `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"reason":"R"}`})
		if got := (call{method: "DELETE", path: events + "/e", body: `{"propagationPolicy":"` + policy + `"}`}).do(t, server); got.code != 200 || got.status.Status != metav1.StatusSuccess {
			t.Errorf("%s: %d %s", policy, got.code, got.body)
		}
	}
}
