package pods

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/volumes"
	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

// full has no place for any volume.
type full struct{ volumes.Drivers }

func (full) Mount(context.Context, csi.Volume) (csi.Mounted, error) {
	return csi.Mounted{}, &csi.LimitError{Err: &csi.StepError{Step: "MountVolume.WaitForAttach", Volume: "v", Err: errors.New("no slot")}}
}

func (full) Unmount(context.Context, *corev1.Pod) error { return nil }

// TestAPodWhoseVolumeHasNoPlaceIsRejected: its owner makes another one, which is placed elsewhere.
func TestAPodWhoseVolumeHasNoPlaceIsRejected(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.manager.Volumes.Drivers = full{}
		p := newPod("p", "web")
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		w.create(p)
		w.settle()
		const want = `Pod was rejected: Node has reached its volume attachment limit, rejecting pod. MountVolume.WaitForAttach failed for volume "v" : no slot`
		if got := w.get("p").Status; got.Phase != corev1.PodFailed || got.Reason != "VolumeAttachmentLimitExceeded" || got.Message != want {
			t.Errorf("%s %s %s\n%s", got.Phase, got.Reason, got.Message, w.events)
		}
	})
}
