package resourceclaim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newPod(entries ...corev1.PodResourceClaim) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-p"},
		Spec:       corev1.PodSpec{ResourceClaims: entries},
	}
}

func templated(entry string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: new("t")}
}

func named(entry, claim string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: entry, ResourceClaimName: &claim}
}

func newTemplate() *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"},
		Spec: resourcev1.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"}},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpus"},
			}}}},
		},
	}
}

// edit changes a claim.
type edit func(*resourcev1.ResourceClaim)

func newClaim(name string, edits ...edit) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

func allocated(c *resourcev1.ResourceClaim) { c.Status.Allocation = &resourcev1.AllocationResult{} }
func protected(c *resourcev1.ResourceClaim) { c.Finalizers = []string{resourcev1.Finalizer} }

func reservedFor(resource, name string, uid types.UID) edit {
	return func(c *resourcev1.ResourceClaim) {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: resource, Name: name, UID: uid})
	}
}

func ownedBy(pod types.UID) edit {
	return func(c *resourcev1.ResourceClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: pod, Controller: new(true)}}
		c.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: "gpu"}
	}
}

func TestPlannedClaim(t *testing.T) {
	claim := planClaim(newPod(templated("gpu")), "gpu", newTemplate(), 0)
	want := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: claim.Name, GenerateName: "p-gpu-",
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2", "resource.kubernetes.io/pod-claim-name": "gpu"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p", Controller: new(true)}},
		},
		Spec: newTemplate().Spec.Spec,
	}
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Error(diff)
	}
}

func TestNames(t *testing.T) {
	names := map[string]string{}
	pod, other := newPod(), newPod()
	other.UID = "uid-other"
	for what, claim := range map[string]*resourcev1.ResourceClaim{
		"first": planClaim(pod, "gpu", newTemplate(), 0), "second try": planClaim(pod, "gpu", newTemplate(), 1),
		"of another entry": planClaim(pod, "nic", newTemplate(), 0), "of a pod of the same name": planClaim(other, "gpu", newTemplate(), 0),
	} {
		if has, taken := names[claim.Name]; taken {
			t.Errorf("%s and %s are both called %s", has, what, claim.Name)
		}
		names[claim.Name] = what
	}
	if again := planClaim(pod, "gpu", newTemplate(), 0).Name; names[again] != "first" {
		t.Errorf("the name has become %s", again)
	}
	long := newPod()
	for _, c := range []struct {
		pod, entry int
		want       string
	}{
		{100, 50, strings.Repeat("p", 37) + "-" + strings.Repeat("e", 18)},
		{200, 3, strings.Repeat("p", 55) + "-"},
		{27, 28, strings.Repeat("p", 27) + "-" + strings.Repeat("e", 28) + "-"},
	} {
		long.Name = strings.Repeat("p", c.pod)
		entry := strings.Repeat("e", c.entry)
		claim := planClaim(long, entry, newTemplate(), 0)
		if claim.GenerateName != c.want || !strings.HasPrefix(claim.Name, c.want) || len(claim.Name) > 63 {
			t.Errorf("%d and %d bytes: %s of %d bytes, want a base of %s", c.pod, c.entry, claim.Name, len(claim.Name), c.want)
		}
	}
}

func TestOwningPod(t *testing.T) {
	foreign := newClaim("c", ownedBy("uid-p"))
	foreign.OwnerReferences[0].Kind = "Job"
	loose := newClaim("c", ownedBy("uid-p"))
	loose.OwnerReferences[0].Controller = nil
	for name, c := range map[string]struct {
		claim *resourcev1.ResourceClaim
		want  types.UID
	}{
		"made for a pod": {newClaim("c", ownedBy("uid-p")), "uid-p"}, "the user's": {newClaim("c"), ""},
		"of another kind": {foreign, ""}, "not controlled": {loose, ""},
	} {
		got := types.UID("")
		if owner := owningPod(c.claim); owner != nil {
			got = owner.UID
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
