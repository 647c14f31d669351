package scheduler

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func claiming(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	return pod
}

func volumeClaim(name, class, volume string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: volume}}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return c
}

// volumeOn is a volume that only one node reaches.
func volumeOn(name, node string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: onNode(node)}}}
}

func onNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}
}

func usingDevices(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	return pod
}

func fromTemplate(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("template")}}
	return pod
}

func deviceClaim(name, reservedFor, node string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	if node != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: onNode(node)}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: reservedFor, UID: testPod(reservedFor, "", "").UID}}
	}
	return c
}

// TestClaimsThatCannotBeHonoured: a pod is placed only where the volumes and devices that it claims are, and the reason
// is upstream's.
func TestClaimsThatCannotBeHonoured(t *testing.T) {
	foreign := volumeOn("v", "node-2")
	foreign.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "another"}
	halfBound := volumeClaim("data", "", "v")
	halfBound.Annotations = nil
	zoned := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: map[string]string{corev1.LabelFailureDomainBetaZone: "x__y"}}}
	lost := volumeClaim("data", "", "v")
	lost.Status.Phase = corev1.ClaimLost
	late := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}
	generic := testPod("a", "", "")
	generic.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}

	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		objects []runtime.Object
		want    string // the node, or the beginning of the message after "0/2 nodes are available: "
	}{
		{"no claim", claiming(testPod("a", "", ""), "data"), nil, `persistentvolumeclaim "data" not found. preemption: 0/2 nodes are available: 2 Preemption is not helpful`},
		{"not bound", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "", "")}, "pod has unbound immediate PersistentVolumeClaims."},
		{"not bound to what it names", claiming(testPod("a", "", ""), "data"), []runtime.Object{halfBound, volumeOn("v", "node-1")}, "pod has unbound immediate PersistentVolumeClaims."},
		{"zone", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "", "v"), zoned}, "2 node(s) had no available volume zone."},
		{"waits for its consumer", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "late", ""), late}, "2 node(s) didn't find available persistent volumes to bind."},
		{"volume gone", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "", "v")}, "2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."},
		{"volume of another claim", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "", "v"), foreign}, "pod has unbound immediate PersistentVolumeClaims."},
		{"lost", claiming(testPod("a", "", ""), "data"), []runtime.Object{lost}, `persistentvolumeclaim "data" bound to non-existent persistentvolume "v".`},
		{"ephemeral", generic, nil, `waiting for ephemeral volume controller to create the persistentvolumeclaim "a-tmp".`},
		{"volume elsewhere", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "", "v"), volumeOn("v", "node-9")}, "2 node(s) didn't match PersistentVolume's node affinity."},
		{"volume on one node", claiming(testPod("a", "", ""), "data"), []runtime.Object{volumeClaim("data", "", "v"), volumeOn("v", "node-2")}, "node-2"},
		{"no devices", usingDevices(testPod("a", "", ""), "gpus"), nil, `could not find ResourceClaim "default/gpus".`},
		{"template", fromTemplate(testPod("a", "", "")), nil, `pod "default/a": ResourceClaim not created yet.`},
		{"no class", usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "", "")}, "request gpu: device class gpu does not exist."},
		{"no devices left", usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "", ""), deviceClass("gpu")}, "2 cannot allocate all claims."},
		{"shared with another", usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "b", "node-1")}, "node-1"},
		{"devices elsewhere", usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "b", "node-9")}, "2 resourceclaim not available on the node."},
		{"devices on one node", usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "a", "node-1")}, "node-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := append(c.objects, testNode("node-1", "z", "2", "8Gi"), testNode("node-2", "z", "2", "8Gi"))
			inWorld(t, objects, func(w *world) {
				w.createPod(c.pod)
				synctest.Wait()
				pod := w.pod(c.pod.Name)
				if strings.HasPrefix(c.want, "node-") {
					if pod.Spec.NodeName != c.want {
						t.Errorf("placed on %q, want %s: %v", pod.Spec.NodeName, c.want, pod.Status.Conditions)
					}
					return
				}
				if pod.Spec.NodeName != "" {
					t.Fatalf("placed on %s", pod.Spec.NodeName)
				}
				if got := pod.Status.Conditions[0].Message; !strings.HasPrefix(got, "0/2 nodes are available: "+c.want) {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

// TestClaimsWakeTheirPods: a pod that waits is placed as soon as its claim, and the claim's volume, are there.
func TestClaimsWakeTheirPods(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "2", "8Gi"), testNode("node-2", "z", "2", "8Gi")}, func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		if _, err := w.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), volumeClaim("data", "", "v"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := w.client.CoreV1().PersistentVolumes().Create(t.Context(), volumeOn("v", "node-2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := w.pod("a").Spec.NodeName; got != "node-2" {
			t.Errorf("placed on %q, want node-2", got)
		}
	})
}

// TestPodsOfOneClassDifferInTheirClaims: two pods that are equal but for their claims are judged by their own volumes.
func TestPodsOfOneClassDifferInTheirClaims(t *testing.T) {
	one, two := volumeClaim("one", "", "v1"), volumeClaim("two", "", "v2")
	objects := []runtime.Object{testNode("node-1", "z", "2", "8Gi"), testNode("node-2", "z", "2", "8Gi"), one, two, volumeOn("v1", "node-1"), volumeOn("v2", "node-2")}
	inWorld(t, objects, func(w *world) {
		for _, claim := range []string{"one", "two"} {
			w.createPod(claiming(testPod(claim, "", ""), claim))
		}
		synctest.Wait()
		if a, b := w.pod("one").Spec.NodeName, w.pod("two").Spec.NodeName; a != "node-1" || b != "node-2" {
			t.Errorf("placed on %q and %q", a, b)
		}
	})
}
