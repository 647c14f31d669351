package volumeattach

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

const (
	testDriver     = "csi.example.com"
	attacherKeeper = "external-attacher/csi-example-com"
)

// world is a small cluster with the controller, and with the test as the kubelets and the external attacher.
type world struct {
	*reconciletest.World
	t *testing.T
}

func inWorld(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{reconciletest.New(t), t}
		w.Run(New())
		f(w)
	})
}

func newNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{managedAnnotation: "true"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// newVolume is bound to the claim of the same name in ns.
func newVolume(name string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: name, UID: types.UID("claim-" + name)},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: testDriver, VolumeHandle: "h-" + name}},
	}}
}

func newClaim(volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: volume, UID: types.UID("claim-" + volume)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func newPod(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, claim := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return p
}

// addVolume puts a claim and its volume there.
func (w *world) addVolume(name string, modes ...corev1.PersistentVolumeAccessMode) {
	reconciletest.Add(w.World, newVolume(name, modes...))
	reconciletest.Add(w.World, newClaim(name))
}

func nameOn(volume, node string) string { return AttachmentName("h-"+volume, testDriver, node) }

func titleOf(volume string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + testDriver + "^h-" + volume)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	w.must(err)
	return n
}

// changeNode changes spec and metadata of a node, and changeStatus its status. change may be called again with a newer version.
func (w *world) changeNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	w.change(name, change, w.Client.CoreV1().Nodes().Update)
}

func (w *world) changeStatus(name string, change func(*corev1.Node)) {
	w.t.Helper()
	w.change(name, change, w.Client.CoreV1().Nodes().UpdateStatus)
}

func (w *world) change(name string, change func(*corev1.Node), write func(context.Context, *corev1.Node, metav1.UpdateOptions) (*corev1.Node, error)) {
	w.t.Helper()
	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n := w.node(name)
		change(n)
		_, err := write(w.t.Context(), n, metav1.UpdateOptions{})
		return err
	}))
}

// mounts is what a kubelet says.
func (w *world) mounts(node string, volumes ...string) {
	w.t.Helper()
	w.changeStatus(node, func(n *corev1.Node) {
		n.Status.VolumesInUse = nil
		for _, v := range volumes {
			n.Status.VolumesInUse = append(n.Status.VolumesInUse, titleOf(v))
		}
	})
}

func unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// removePod removes a pod at once.
func (w *world) removePod(name string) {
	w.t.Helper()
	w.must(w.Client.CoreV1().Pods("ns").Delete(w.t.Context(), name, *metav1.NewDeleteOptions(0)))
}

// all are the attachments, as "volume@node", with + if they are attached and - if they are being deleted.
func (w *world) all() string {
	w.t.Helper()
	list, err := w.Client.StorageV1().VolumeAttachments().List(w.t.Context(), metav1.ListOptions{})
	w.must(err)
	var out []string
	for _, a := range list.Items {
		text := *a.Spec.Source.PersistentVolumeName + "@" + a.Spec.NodeName
		if a.Status.Attached {
			text += "+"
		}
		if a.DeletionTimestamp != nil {
			text += "-"
		}
		out = append(out, text)
	}
	return sortedWords(out)
}

// attacher does what an external attacher does, once: it attaches, and lets go what is to be detached.
func (w *world) attacher() {
	w.t.Helper()
	list, err := w.Client.StorageV1().VolumeAttachments().List(w.t.Context(), metav1.ListOptions{})
	w.must(err)
	for _, a := range list.Items {
		err := w.attachOrDetach(&a)
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // else it is another one by now
			w.must(err)
		}
	}
}

func (w *world) attachOrDetach(a *storagev1.VolumeAttachment) error {
	client := w.Client.StorageV1().VolumeAttachments()
	if a.DeletionTimestamp != nil {
		a.Finalizers = nil
		_, err := client.Update(w.t.Context(), a, metav1.UpdateOptions{})
		return err
	}
	if a.Status.Attached {
		return nil
	}
	a.Finalizers = []string{attacherKeeper}
	next, err := client.Update(w.t.Context(), a, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	next.Status.Attached = true
	_, err = client.UpdateStatus(w.t.Context(), next, metav1.UpdateOptions{})
	return err
}

func (w *world) want(attachments string) {
	w.t.Helper()
	w.Settle()
	if got := w.all(); got != attachments {
		w.t.Errorf("attachments are %q, want %q", got, attachments)
	}
}

// reported compares the volumes in the status of a node.
func (w *world) reported(node string, volumes ...string) {
	w.t.Helper()
	var got, want []string
	for _, v := range w.node(node).Status.VolumesAttached {
		got = append(got, string(v.Name))
	}
	for _, v := range volumes {
		want = append(want, string(titleOf(v)))
	}
	if sortedWords(got) != sortedWords(want) {
		w.t.Errorf("node %s reports %v, want %v", node, got, want)
	}
}

// heard compares the events since the last call.
func (w *world) heard(want ...string) {
	w.t.Helper()
	if got := w.Events.List(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("events %q, want %q", got, want)
	}
}

// pass lets time go by in the bubble.
func (w *world) pass(d time.Duration) { time.Sleep(d) }

// quiet checks that nothing is written in an hour.
func (w *world) quiet() {
	w.t.Helper()
	w.Settle()
	w.Writes()
	w.Events.List()
	w.pass(time.Hour)
	w.Settle()
	if writes, events := w.Writes(), w.Events.List(); len(writes)+len(events) > 0 {
		w.t.Errorf("nothing has changed, but there is %v %v", writes, events)
	}
}

func attachmentOf(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: nameOn(volume, node), Finalizers: []string{attacherKeeper}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: testDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

func sortedWords(words []string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}
