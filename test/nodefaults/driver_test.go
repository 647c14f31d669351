package nodefaults

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

const driverName = "folders"

// driverHangs: a CSI driver takes calls and does not answer them. Pods that wait for it say for what, those that start and those that
// end; other pods start and end meanwhile, also with an agent that is started then; and when the driver goes on, all of them get where they were to be.
func driverHangs(t *testing.T, n *node) {
	driver := n.startDriver(t)
	for _, name := range []string{"stages", "publishes", "ends"} {
		n.volume(t, name)
	}
	n.create(t, withVolume("ends"))
	n.awaitReady(t, "ends")

	driver.Hang("Publish", true)
	n.create(t, withVolume("publishes"))
	n.awaitCall(t, driver, "Publish publishes")
	driver.Hang("Stage", true)
	n.create(t, withVolume("stages"))
	n.awaitCall(t, driver, "Stage stages")
	driver.Hang("Unpublish", true)
	n.delete(t, "ends")

	n.othersComeAndGo(t, "beside")
	n.awaitTold(t, "stages", `has not answered NodeStageVolume for volume "stages"`)
	n.awaitTold(t, "publishes", `has not answered NodePublishVolume for volume "publishes"`)
	n.awaitTold(t, "ends", `has not answered NodeUnpublishVolume for volume "ends"`)
	n.killAgent(t)
	n.startAgent(t)
	n.othersComeAndGo(t, "beside-another-agent")
	for _, method := range []string{"Stage", "Publish", "Unpublish"} {
		driver.GoOn(method)
	}
	n.awaitReady(t, "stages", "publishes")
	n.awaitDeleted(t, "ends")
	n.deletePods(t)
	n.awaitUnstaged(t)
}

func (n *node) awaitCall(t *testing.T, driver *csitest.Driver, call string) {
	t.Helper()
	n.await(t, podTimeMax, call, func(context.Context) string {
		if !driver.Saw(call) {
			return "the driver was not asked"
		}
		return ""
	})
}

func (n *node) othersComeAndGo(t *testing.T, name string) {
	t.Helper()
	n.create(t, newPod(name))
	n.awaitReady(t, name)
	n.delete(t, name)
	n.awaitDeleted(t, name)
}

// startDriver has a driver register that nobody needs to attach.
func (n *node) startDriver(t *testing.T) *csitest.Driver {
	t.Helper()
	driver := &csitest.Driver{Name: driverName, Mount: csitest.Folder(t.TempDir()),
		Capabilities: []spec.NodeServiceCapability_RPC_Type{spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}}
	csitest.NewRegistrar(driver.Name, driver.Serve(t)).Serve(t, filepath.Join(n.data(), "plugins_registry", "folders.sock"))
	attach := false
	_, err := n.client.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driverName}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach}}, metav1.CreateOptions{})
	check(t, err)
	n.await(t, podTimeMax, "the driver's registration", func(ctx context.Context) string {
		node, err := n.client.StorageV1().CSINodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil || len(node.Spec.Drivers) == 0 {
			return "no driver is known of the node"
		}
		return ""
	})
	return driver
}

// volume is one of the driver, with a claim of the same name that has it.
func (n *node) volume(t *testing.T, name string) {
	t.Helper()
	none, size := "", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := n.client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: name}}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = n.client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &none, VolumeName: name, AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	check(t, err)
}

// withVolume is a pod that has the volume of its name.
func withVolume(name string) *corev1.Pod {
	pod := newPod(name)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	mounts := &pod.Spec.Containers[0].VolumeMounts
	*mounts = append(*mounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	return pod
}

// awaitUnstaged waits until nothing is left of the driver's volumes on the node.
func (n *node) awaitUnstaged(t *testing.T) {
	t.Helper()
	n.await(t, podTimeMax, "volumes on the node", func(context.Context) string {
		left, err := filepath.Glob(filepath.Join(n.data(), "plugins", "kubernetes.io", "csi", driverName, "*"))
		check(t, err)
		return strings.Join(left, "\n")
	})
}
