package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/resources/claims/claimstest"
)

// cdiSpec is what a driver says of the device of the claim "dongle", as useDevice wants it.
const cdiSpec = `{"cdiVersion": "0.6.0", "kind": "example.com/dev", "devices": [{"name": "dongle", "containerEdits": {
	"env": ["DONGLES=d1"],
	"deviceNodes": [{"path": "/dev/dongle", "hostPath": "/dev/kmsg", "permissions": "w"}],
	"mounts": [{"hostPath": %q, "containerPath": "/given", "options": ["ro", "nosuid", "nodev", "bind"]}]}}]}`

// withClaim is a pod like withDevice, that has the device by a claim.
func withClaim(node string) *corev1.Pod {
	pod := withDevice(node, "web")
	name := "dongle"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "my", ResourceClaimName: &name}}
	for _, c := range []*corev1.Container{&pod.Spec.InitContainers[0], &pod.Spec.Containers[0]} {
		c.Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "my"}},
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}
	}
	return pod
}

// allocated is a claim that the scheduler has allocated and reserved for the pod.
func allocated(pod *corev1.Pod) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dongle", UID: "uid-dongle"},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "dev.example.com", Pool: "pool", Device: "d1"}}}}}}
}

// plugDriver has a DRA driver register, once the agent has the folder for that.
func (m *machine) plugDriver(name string) *claimstest.Driver {
	m.t.Helper()
	m.await("the folder of the plugins", func(*corev1.Pod) bool {
		_, err := os.Stat(filepath.Join(m.dir, "plugins_registry"))
		return err == nil
	})
	d := &claimstest.Driver{Name: "dev.example.com"}
	d.ServeAt(m.t, filepath.Join(m.dir, "plugins_registry", name))
	return d
}

// TestADeviceOfAClaim: the driver prepares it, the container has it by its CDI name, and an agent that was replaced has it unprepared before
// the pod is gone.
func TestADeviceOfAClaim(t *testing.T) {
	m := newMachine(t)
	m.plugins = true
	given := t.TempDir()
	m.cdiDirs = []string{t.TempDir()}
	for path, text := range map[string]string{filepath.Join(given, "in"): "there", filepath.Join(m.cdiDirs[0], "dev.json"): fmt.Sprintf(cdiSpec, given)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod := withClaim(m.name)
	if err := m.client.Tracker().Add(allocated(pod)); err != nil {
		t.Fatal(err)
	}
	m.start()
	defer m.clean()
	driver := m.plugDriver("first.sock")
	pods := m.client.CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	if diff := cmp.Diff([]string{"Prepare dongle"}, slices.Compact(driver.Calls())); diff != "" {
		t.Error(diff)
	}
	m.stop()
	m.start()
	p := m.await("still ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	now, grace := metav1.Now(), int64(1)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	if _, err := pods.Update(context.Background(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("deleted", func(p *corev1.Pod) bool { return p == nil })
	if diff := cmp.Diff([]string{"Unprepare dongle"}, driver.Calls()); diff != "" {
		t.Error(diff)
	}
	m.nothingMounted()
}
