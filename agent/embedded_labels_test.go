package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

// memory is a driver whose volumes are in memory, mounted with the options that it is given.
type memory struct{ csitest.Folder }

func (memory) Publish(r *spec.NodePublishVolumeRequest) error {
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return err
	}
	return unix.Mount("tmpfs", r.TargetPath, "tmpfs", 0, strings.Join(r.VolumeCapability.GetMount().GetMountFlags(), ","))
}

// copies is a pod with a volume of each kind at /KIND. Each of its containers copies a file.
func copies(node, host string) *corev1.Pod {
	grace, one := int64(1), corev1.LocalObjectReference{Name: "one"}
	sources := map[string]corev1.VolumeSource{
		"scratch": {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"memory":  {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		"config":  {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: one}},
		"secret":  {Secret: &corev1.SecretVolumeSource{SecretName: "one"}},
		"all":     {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: one}}}}},
		"claim":   {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
		"host":    {HostPath: &corev1.HostPathVolumeSource{Path: host}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c20,c30"}}},
	}
	var mounts []corev1.VolumeMount
	for name, source := range sources {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	for name, files := range map[string][2]string{
		"config": {"/config/file", "/scratch/file"}, "secret": {"/secret/file", "/memory/file"}, "projected": {"/all/file", "/claim/file"},
		"names": {"/etc/hosts", "/dev/termination-log"}, "host": {"/host/file", "/scratch/host"},
	} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: name, Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent, VolumeMounts: mounts,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command: []string{"/setpoint", "copy", files[0], files[1]},
		})
	}
	return pod
}

func (m *machine) copied() {
	m.t.Helper()
	cannot, can := false, true
	m.claimed()
	for _, object := range []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string]string{"file": "there"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string][]byte{"file": []byte("there")}},
	} {
		if err := m.client.Tracker().Add(object); err != nil {
			m.t.Fatal(err)
		}
	}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "folders"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &cannot, SELinuxMount: &can}}
	if _, err := m.client.StorageV1().CSIDrivers().Update(context.Background(), driver, metav1.UpdateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// TestVolumesOfALabelledPod: it uses what the agent and a driver made for it. `make vm LSM=selinux` also proves that it has nothing else.
func TestVolumesOfALabelledPod(t *testing.T) {
	m := newMachine(t)
	m.plugins = true
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "file"), []byte("there"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.copied()
	m.start()
	defer m.clean()
	m.await("the folder of the plugins", func(*corev1.Pod) bool {
		_, err := os.Stat(filepath.Join(m.dir, "plugins_registry"))
		return err == nil
	})
	driver := &csitest.Driver{Name: "folders", Mount: memory{}}
	csitest.NewRegistrar("folders", driver.Serve(t)).Serve(t, filepath.Join(m.dir, "plugins_registry", "folders.sock"))
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), copies(m.name, host), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := m.await("ended", func(p *corev1.Pod) bool {
		return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			t.Fatalf("%s: %+v", c.Name, c.State)
		}
		denied := c.Name == "host" && m.runtime.Can().SELinux
		said := c.State.Terminated.Message
		if failed := c.State.Terminated.ExitCode != 0; failed != denied || denied && !strings.Contains(said, "permission denied") {
			t.Errorf("%s: exit code %d, %s", c.Name, c.State.Terminated.ExitCode, said)
		}
	}
	flags := driver.Last("Publish").(*spec.NodePublishVolumeRequest).VolumeCapability.GetMount().GetMountFlags()
	if labelled := strings.Contains(strings.Join(flags, " "), `:container_file_t:s0:c20,c30"`); labelled != m.runtime.Can().SELinux {
		t.Errorf("the driver mounted with %q", flags)
	}
	m.delete("web")
	m.nothingMounted()
}
