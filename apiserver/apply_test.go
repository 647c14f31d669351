package apiserver

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func apply(path, manager, body string) call {
	return call{method: "PATCH", path: path + "?fieldManager=" + manager, contentType: patchTypeOf["apply"], body: body}
}

func TestApply(t *testing.T) {
	server, _ := newServer(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"by":"alice"}},"data":{"k":"1","l":"2"}}`
	got := apply(cmPath+"/a", "alice", body).do(t, server)
	if got.code != 201 {
		t.Fatalf("create by apply: %d %s", got.code, got.body)
	}
	first := mustDo[corev1.ConfigMap](t, server, call{path: cmPath + "/a"})
	if again := mustDo[corev1.ConfigMap](t, server, apply(cmPath+"/a", "alice", body)); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("applying the same again: %s to %s", first.ResourceVersion, again.ResourceVersion)
	}
	got = apply(cmPath+"/a", "bob", strings.Replace(body, `"1"`, `"9"`, 1)).do(t, server)
	refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: `conflict with "alice"`}.check(t, "conflict", got)
	if cause, ok := got.cause(metav1.CauseTypeFieldManagerConflict); !ok || cause.Field != ".data.k" {
		t.Errorf("causes: %s", got.body)
	}
	dropped := mustDo[corev1.ConfigMap](t, server, apply(cmPath+"/a", "alice", strings.Replace(body, `,"l":"2"`, "", 1)))
	if _, still := dropped.Data["l"]; still || dropped.Data["k"] != "1" {
		t.Errorf("after giving up l: %v", dropped.Data)
	}
	forced := mustDo[corev1.ConfigMap](t, server, apply(cmPath+"/a", "bob&force=true", strings.Replace(body, `"1"`, `"9"`, 1)))
	if forced.Data["k"] != "9" {
		t.Errorf("forced = %v", forced.Data)
	}
}

func TestApplyRefusals(t *testing.T) {
	server, _ := newServer(t)
	body := cmBody("a")
	for name, c := range map[string]struct {
		call
		want refusal
	}{
		"no manager":    {call{method: "PATCH", path: cmPath + "/a", contentType: patchTypeOf["apply"], body: body}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "fieldManager: Required value"}},
		"no kind":       {apply(cmPath+"/a", "m", `{"metadata":{"name":"a"}}`), refusal{code: 400, reason: metav1.StatusReasonBadRequest}},
		"managedFields": {apply(cmPath+"/a", "m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"manager":"x"}]}}`), refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "metadata.managedFields must be nil"}},
		// The text is upstream's, by which clients know it; its code there is 500.
		"unknown field": {apply(cmPath+"/a", "m&fieldValidation=Strict", strings.Replace(body, `"data"`, `"dat"`, 1)), refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: ".dat: field not declared in schema"}},
		"with uid":      {apply(cmPath+"/a", "m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u"}}`), refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: "uid mismatch"}},
		"not YAML":      {apply(cmPath+"/a", "m", "\t{"), refusal{code: 400, reason: metav1.StatusReasonBadRequest}},
		"force a merge": {call{method: "PATCH", path: cmPath + "/a?force=true", contentType: patchTypeOf["merge"], body: `{}`}, refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "force"}},
	} {
		c.want.check(t, name, c.do(t, server))
	}
}

// TestApplyOwnership: status is owned through status, the spec through the main
// resource, replicas through scale.
func TestApplyOwnership(t *testing.T) {
	server, _ := newServer(t)
	mustDo[appsv1.Deployment](t, server, apply(depPath+"/d", "user", depBody("d")))
	status := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":9},"status":{"replicas":2}}`
	got := mustDo[appsv1.Deployment](t, server, apply(depPath+"/d/status", "controller", status))
	if got.Status.Replicas != 2 || *got.Spec.Replicas != 2 {
		t.Errorf("after status: %d of %d", got.Status.Replicas, *got.Spec.Replicas)
	}
	entry := managed(got.ManagedFields, "controller")
	if entry == nil || entry.Subresource != "status" || strings.Contains(string(entry.FieldsV1.Raw), "f:spec") {
		t.Errorf("status entry = %+v", entry)
	}
	scale := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":5}}`
	refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: `conflict with "user"`}.
		check(t, "scale owned by another", apply(depPath+"/d/scale", "autoscaler", scale).do(t, server))
	if s := mustDo[autoscalingv1.Scale](t, server, apply(depPath+"/d/scale", "autoscaler&force=true", scale)); s.Spec.Replicas != 5 {
		t.Errorf("scale = %+v", s)
	}
	got = mustDo[appsv1.Deployment](t, server, call{path: depPath + "/d"})
	if entry := managed(got.ManagedFields, "autoscaler"); entry == nil || entry.Subresource != "scale" || !strings.Contains(string(entry.FieldsV1.Raw), "f:replicas") {
		t.Errorf("scale entry = %+v", entry)
	}
	if strings.Contains(string(managed(got.ManagedFields, "user").FieldsV1.Raw), "f:replicas") {
		t.Error("the user still owns replicas")
	}
	refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: `conflict with "autoscaler"`}.
		check(t, "replicas taken back", apply(depPath+"/d", "user", depBody("d")).do(t, server))
}

// TestTemplateGenerationIsOwned: as upstream, whose DaemonSets always have the annotation,
// by whoever writes one.
func TestTemplateGenerationIsOwned(t *testing.T) {
	server, _ := newServer(t)
	body := strings.Replace(depBody("d"), "Deployment", "DaemonSet", 1)
	body = strings.Replace(body, `"replicas":2,`, "", 1)
	got := mustDo[appsv1.DaemonSet](t, server, call{method: "POST", path: strings.Replace(depPath, "deployments", "daemonsets", 1) + "?fieldManager=m", body: body})
	if entry := managed(got.ManagedFields, "m"); entry == nil || !strings.Contains(string(entry.FieldsV1.Raw), `"f:deprecated.daemonset.template.generation"`) ||
		got.Annotations[appsv1.DeprecatedTemplateGeneration] != "1" {
		t.Errorf("%v, %s", got.Annotations, entry.FieldsV1.Raw)
	}
}

func managed(entries []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range entries {
		if entries[i].Manager == manager {
			return &entries[i]
		}
	}
	return nil
}

// TestApplyMergesListsByKey needs the real schema: containers merge by name.
func TestApplyMergesListsByKey(t *testing.T) {
	server, _ := newServer(t)
	mustDo[appsv1.Deployment](t, server, apply(depPath+"/d", "user", depBody("d")))
	sidecar := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"s"}]}}}}`
	got := mustDo[appsv1.Deployment](t, server, apply(depPath+"/d", "mesh", sidecar))
	if n := len(got.Spec.Template.Spec.Containers); n != 2 {
		t.Errorf("%d containers", n)
	}
}

// TestApplyOwnsNothingThatIsReset: the spec of a signing request never changes, and a
// status endpoint that keeps metadata gives nobody a label.
func TestApplyOwnsNothingThatIsReset(t *testing.T) {
	server, _ := newServer(t)
	body := csrBody(t, "r")
	mustDo[certificatesv1.CertificateSigningRequest](t, server, call{method: "POST", path: csrPath, body: body})
	other := strings.Replace(body, "example.com/signer", "example.com/other", 1)
	other = strings.Replace(other, "{", `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",`, 1)
	if got := apply(csrPath+"/r", "other", other).do(t, server); got.code != 200 || strings.Contains(got.body, "f:spec") {
		t.Errorf("apply of another signer: %d %s", got.code, got.body)
	}
	const taints = "/apis/resource.k8s.io/v1/devicetaintrules"
	rule := `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"t","labels":{"a":"b"}},"spec":{"taint":{"key":"k","effect":"NoSchedule"}}}`
	mustDo[resourcev1.DeviceTaintRule](t, server, call{method: "POST", path: taints, body: rule})
	got := apply(taints+"/t/status", "signer", `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"t","labels":{"a":"c"}},"status":{}}`).do(t, server)
	if got.code != 200 {
		t.Errorf("apply of a label through status: %d %s", got.code, got.body)
	}
}
