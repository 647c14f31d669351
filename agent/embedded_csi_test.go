package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	hostmachine "github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

// copyFile is a container that reads and writes its volume.
func copyFile(from, to string) int {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, append(data, " and back"...), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// claimed is a claim with its volume, for a driver whose volumes have to be attached.
func (m *machine) claimed() {
	m.t.Helper()
	size := func(s string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s)}
	}
	for _, object := range []runtime.Object{
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "folders"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			Capacity: size("1Gi"), ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "folders", VolumeHandle: "vol"}}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"},
			Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size("1Gi")}},
	} {
		if err := m.client.Tracker().Add(object); err != nil {
			m.t.Fatal(err)
		}
	}
}

// attach does the attacher's work, once the node says that the volume is in use.
func (m *machine) attach(*corev1.Pod) bool {
	const name = "kubernetes.io/csi/folders^vol"
	node, err := m.client.CoreV1().Nodes().Get(context.Background(), m.name, metav1.GetOptions{})
	if err != nil || !slices.Contains(node.Status.VolumesInUse, corev1.UniqueVolumeName(name)) {
		return false
	}
	at := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("csi-%x", sha256.Sum256([]byte("volfolders"+m.name)))},
		Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"lun": "7"}}}
	_, err = m.client.StorageV1().VolumeAttachments().Create(context.Background(), at, metav1.CreateOptions{})
	return err == nil
}

// withVolume is a pod that copies a file of its volume before it serves.
func withVolume(node string) *corev1.Pod {
	grace := int64(1)
	mounts := []corev1.VolumeMount{{Name: "v", MountPath: "/data"}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
			InitContainers: []corev1.Container{{Name: "copy", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", Command: []string{"/setpoint", "copy", "/data/in", "/data/out"}, VolumeMounts: mounts}},
			Containers: []corev1.Container{{Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", VolumeMounts: mounts,
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}}}},
	}
}

// TestAVolumeOfADriver: claim, attachment, a pod that reads and writes, an agent that is replaced, growth, and nothing mounted after that.
func TestAVolumeOfADriver(t *testing.T) {
	m := newMachine(t)
	m.plugins = true
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "in"), []byte("there"), 0o600); err != nil {
		t.Fatal(err)
	}
	driver := &csitest.Driver{Name: "folders", Mount: csitest.Folder(source), Capabilities: []spec.NodeServiceCapability_RPC_Type{
		spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, spec.NodeServiceCapability_RPC_EXPAND_VOLUME}}
	m.claimed()
	m.start()
	defer m.clean()
	m.await("the folder of the plugins", func(*corev1.Pod) bool {
		_, err := os.Stat(filepath.Join(m.dir, "plugins_registry"))
		return err == nil
	})
	csitest.NewRegistrar("folders", driver.Serve(t)).Serve(t, filepath.Join(m.dir, "plugins_registry", "folders.sock"))
	m.await("the CSINode", func(*corev1.Pod) bool {
		found, err := m.client.StorageV1().CSINodes().Get(context.Background(), m.name, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(found.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.NodeID == "node-of-folders" })
	})
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), withVolume(m.name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("attached", m.attach)
	m.await("ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	if out, err := os.ReadFile(filepath.Join(source, "out")); err != nil || string(out) != "there and back" {
		t.Errorf("the pod wrote %q, %v", out, err)
	}
	m.replaceAndGrow()
	p := m.await("still ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	now, grace := metav1.Now(), int64(1)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	if _, err := m.client.CoreV1().Pods("default").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("deleted", func(p *corev1.Pod) bool { return p == nil })
	m.await("not in use", func(*corev1.Pod) bool {
		node, err := m.client.CoreV1().Nodes().Get(context.Background(), m.name, metav1.GetOptions{})
		return err == nil && len(node.Status.VolumesInUse) == 0
	})
	if diff := cmp.Diff([]string{"Stage vol", "Publish vol", "Expand vol", "Unpublish vol", "Unstage vol"}, driver.Calls()); diff != "" {
		t.Error(diff)
	}
	m.nothingMounted()
}

// replaceAndGrow has another agent find that the volume has grown.
func (m *machine) replaceAndGrow() {
	m.t.Helper()
	m.stop()
	volume, err := m.client.CoreV1().PersistentVolumes().Get(context.Background(), "pv", metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	if _, err := m.client.CoreV1().PersistentVolumes().Update(context.Background(), volume, metav1.UpdateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	m.start()
	m.await("the claim has grown", func(*corev1.Pod) bool {
		claim, err := m.client.CoreV1().PersistentVolumeClaims("default").Get(context.Background(), "data", metav1.GetOptions{})
		return err == nil && claim.Status.Capacity.Storage().String() == "2Gi"
	})
}

func (m *machine) nothingMounted() {
	m.t.Helper()
	resolved, err := hostmachine.Resolve(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	mounts, err := hostmachine.MountsBelow(resolved)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, at := range mounts {
		if strings.Contains(at, "/pods/") || strings.Contains(at, "/plugins/") {
			m.t.Errorf("still mounted: %s", at)
		}
	}
	for _, dir := range []string{"pods", "plugins/kubernetes.io/csi/folders"} {
		if left, err := os.ReadDir(filepath.Join(m.dir, dir)); err == nil && len(left) > 0 {
			m.t.Errorf("left in %s: %v", dir, left)
		}
	}
}
