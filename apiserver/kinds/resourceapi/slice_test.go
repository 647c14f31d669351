package resourceapi

import (
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTaintsHaveATime: tolerations count from it.
func TestTaintsHaveATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := metav1.NewTime(time.Now())
		with := func(taints ...resourcev1.DeviceTaint) *slice {
			return &slice{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made}, Spec: resourcev1.ResourceSliceSpec{
				Devices: []resourcev1.Device{{Name: "d", Taints: taints}},
			}}
		}
		old := with(resourcev1.DeviceTaint{Key: "a"})
		prepareSlice(old)
		time.Sleep(90 * time.Second)
		next := with(resourcev1.DeviceTaint{Key: "a"}, resourcev1.DeviceTaint{Key: "b"})
		stampTaints(next, old, time.Now())
		taints := next.Spec.Devices[0].Taints
		if !taints[0].TimeAdded.Equal(&made) || taints[1].TimeAdded == nil || !taints[1].TimeAdded.Time.Equal(time.Now()) {
			t.Errorf("%v, want that of the stored taint and the present", taints)
		}
	})
}
