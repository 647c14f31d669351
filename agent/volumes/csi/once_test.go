package csi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

// TestOnePodHasAVolumeOfReadWriteOncePod: a pod that names its node itself meets no scheduler that would see to it. Another agent knows
// who has it, too.
func TestOnePodHasAVolumeOfReadWriteOncePod(t *testing.T) {
	w := newWorld(t, &csitest.Driver{}, csiDriver(nil))
	w.register()
	once := pv(func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	refused := func(when string) {
		t.Helper()
		const want = `MountVolume.SetUp failed for volume "pv" : volume uses the ReadWriteOncePod access mode and is already in use by another pod`
		if _, err := w.mount("b", once); err == nil || err.Error() != want {
			t.Errorf("%s: err = %v, want %s", when, err, want)
		}
	}
	w.mustMount("a", once)
	refused("while a has it")
	w.mustMount("a", once)
	w.end()
	w.start()
	w.register()
	refused("with another agent")
	if err := w.unmount("a"); err != nil {
		t.Fatal(err)
	}
	w.mustMount("b", once)
}
