package csi_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func attachment(change func(*storagev1.VolumeAttachmentStatus)) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("csi-%x", sha256.Sum256([]byte("voldn")))}}
	change(&a.Status)
	return a
}

// TestAVolumeThatIsNotAttached: what the pod is told, and when.
func TestAVolumeThatIsNotAttached(t *testing.T) {
	const late = `MountVolume.WaitForAttach failed for volume "pv" : timed out waiting for external-attacher of d CSI driver to attach volume vol: `
	for name, c := range map[string]struct {
		reported bool
		found    *storagev1.VolumeAttachment
		want     string
	}{
		"the Node does not say that it is in use": {false, attachment(func(s *storagev1.VolumeAttachmentStatus) { s.Attached = true }),
			late + `volume "kubernetes.io/csi/d^vol" has not been added to the list of VolumesInUse in the node's volume status`},
		"no attachment": {true, nil, late + "volume vol has GET error for volume attachment csi-"},
		"the attacher failed": {true, attachment(func(s *storagev1.VolumeAttachmentStatus) {
			s.AttachError = &storagev1.VolumeError{Message: "no such disk"}
		}), late + "no such disk"},
		"the attacher does nothing": {true, attachment(func(*storagev1.VolumeAttachmentStatus) {}), late + "it is not attached for volume attachment csi-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, capable())
				if c.found != nil {
					if err := w.client.Tracker().Add(c.found); err != nil {
						t.Fatal(err)
					}
				}
				if c.reported {
					w.node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^vol"}
				}
				begin := time.Now()
				_, err := w.mount("one", pv(nil))
				if err == nil || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
				if took := time.Since(begin); took.Round(time.Second) != 2*time.Minute { // the caches come first
					t.Errorf("after %v", took)
				}
				if diff := cmp.Diff([]corev1.UniqueVolumeName{"kubernetes.io/csi/d^vol"}, w.m.InUse()); diff != "" {
					t.Error(diff)
				}
				if err := w.unmount("one"); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if used := w.m.InUse(); len(used) > 0 {
					t.Errorf("still in use: %v", used)
				}
			})
		})
	}
}

// TestAVolumeThatIsAttached: without a CSIDriver object volumes have to be attached, but there is no driver here.
func TestAVolumeThatIsAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, capable(), attachment(func(s *storagev1.VolumeAttachmentStatus) { s.Attached = true }))
		w.node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^vol"}
		_, err := w.mount("one", pv(nil))
		const want = `MountVolume.SetUp failed for volume "pv" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: ` +
			`driver name d not found in the list of registered CSI drivers`
		if err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	})
}
