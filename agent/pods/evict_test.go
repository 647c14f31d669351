package pods

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// TestAnEvictedPodFailsAndLeavesNothing but its object, which tells why.
func TestAnEvictedPodFailsAndLeavesNothing(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		w.create(pod)
		volume := filepath.Join(w.dir, "pods", string(pod.UID), "volumes")
		if _, err := os.Stat(volume); err != nil {
			t.Fatal(err)
		}
		if active := w.manager.Active(); len(active) != 1 {
			t.Errorf("active: %d pods", len(active))
		}
		why := status.Rejection{Reason: "Evicted", Message: "too much. ", GraceSeconds: to(int64(1)), Disrupted: true}
		if !w.manager.Evict(pod.UID, why) {
			t.Fatal("there was nothing to evict")
		}
		if w.manager.Evict(pod.UID, why) || len(w.manager.Active()) != 0 {
			t.Error("it can be evicted twice")
		}
		w.settle()
		got := w.get("p").Status
		if got.Phase != corev1.PodFailed || got.Reason != "Evicted" || got.Message != "too much. " {
			t.Errorf("status %s %q %q", got.Phase, got.Reason, got.Message)
		}
		if len(got.ContainerStatuses) != 1 || got.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("containers: %+v", got.ContainerStatuses)
		}
		if s := condition(w.get("p"), corev1.DisruptionTarget); s != corev1.ConditionTrue {
			t.Errorf("DisruptionTarget: %q", s)
		}
		if !w.events.has("Evicted too much. ") {
			t.Errorf("events:\n%s", w.events)
		}
		if _, err := os.Stat(volume); !os.IsNotExist(err) {
			t.Errorf("its volume is there: %v", err)
		}
		if n := w.runtime.Left(); n != 0 || w.manager.Ending(pod.UID) {
			t.Errorf("%d sandboxes and containers are left", n)
		}
		w.delete("p", 0)
		w.settle()
		if w.exists("p") {
			t.Error("it cannot be deleted")
		}
	})
}

// TestAPodThatIsBeingEvictedHasNotFailedYet: its controller must not replace it while it runs.
func TestAPodThatIsBeingEvictedHasNotFailedYet(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {StopsAfter: time.Hour}}, func(w *world) {
		pod := newPod("p", "web")
		w.create(pod)
		if !w.manager.Evict(pod.UID, status.Rejection{Reason: "Evicted", Message: "too much. "}) {
			t.Fatal("there was nothing to evict")
		}
		w.settle()
		if got := w.get("p").Status; got.Phase != corev1.PodRunning || got.Reason != "" || !w.manager.Ending(pod.UID) {
			t.Errorf("status %s %q while its container runs", got.Phase, got.Reason)
		}
		time.Sleep(corev1.DefaultTerminationGracePeriodSeconds * time.Second)
		w.settle()
		if got := w.get("p").Status; got.Phase != corev1.PodFailed {
			t.Errorf("status %s in the end", got.Phase)
		}
	})
}

// TestPodsAreRejectedUnderPressure while those that run go on.
func TestPodsAreRejectedUnderPressure(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("before", "web"))
		w.pressure = []corev1.NodeConditionType{corev1.NodeDiskPressure}
		w.create(newPod("during", "web"))
		if got := w.get("before").Status.Phase; got != corev1.PodRunning {
			t.Errorf("a pod that ran: %s", got)
		}
		got := w.get("during").Status
		if got.Phase != corev1.PodFailed || got.Reason != "Evicted" ||
			got.Message != "Pod was rejected: The node had condition: [DiskPressure]. " {
			t.Errorf("a new pod: %s %q %q", got.Phase, got.Reason, got.Message)
		}
	})
}

// TestFinishedPodsMakeRoom: their objects stay as they are, and pods that run stay too.
func TestFinishedPodsMakeRoom(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}, "job": {ExitAfter: time.Second}}, func(w *world) {
		w.create(newPod("runs", "web"))
		done := newPod("done", "job")
		done.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(done)
		time.Sleep(2 * time.Second)
		w.settle()
		before := w.get("done").Status
		if before.Phase != corev1.PodSucceeded || w.runtime.Left() != 4 {
			t.Fatalf("phase %s, %d sandboxes and containers", before.Phase, w.runtime.Left())
		}
		w.manager.RemoveFinished(context.Background())
		w.settle()
		if n := w.runtime.Left(); n != 2 {
			t.Errorf("%d sandboxes and containers are left", n)
		}
		if after := w.get("done").Status; !equality.Semantic.DeepEqual(before, after) {
			t.Errorf("its status was\n%+v\nand is\n%+v", before, after)
		}
		if got := w.get("runs").Status.Phase; got != corev1.PodRunning {
			t.Errorf("the other pod: %s", got)
		}
	})
}
