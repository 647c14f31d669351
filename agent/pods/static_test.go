package pods

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// TestAStaticPodIsShownByItsMirror, which changes nothing of it, and neither does a pod that only claims to be one.
func TestAStaticPodIsShownByItsMirror(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		static := newPod("s", "web")
		static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		w.manager.StartStatic(w.ctx, static)
		w.settle()
		if w.runtime.Left() != 2 || !w.manager.Runs(static.UID) {
			t.Fatalf("%d sandboxes and containers", w.runtime.Left())
		}
		mirror := newPod("s", "web")
		mirror.UID = "mirror"
		mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: string(static.UID)}
		w.create(mirror)
		false1 := newPod("other", "web")
		false1.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: string(static.UID)}
		w.create(false1)
		if w.runtime.Left() != 2 {
			t.Errorf("a mirror runs something: %d", w.runtime.Left())
		}
		if got := w.get("s").Status; got.Phase != corev1.PodRunning || len(got.ContainerStatuses) != 1 {
			t.Errorf("the mirror's status: %+v", got)
		}
		if got := w.get("other").Status; got.Phase == corev1.PodRunning {
			t.Errorf("the other's status: %+v", got)
		}
		if list, known := w.manager.Mirrors(); len(list) != 2 || !known {
			t.Errorf("%d mirrors, %v", len(list), known)
		}
		var now int64
		if err := w.client.CoreV1().Pods("default").Delete(context.Background(), "s", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if w.runtime.Left() != 2 {
			t.Error("it ended with its mirror")
		}
		w.manager.EndStatic(w.ctx, static)
		w.settle()
		if w.runtime.Left() != 0 || w.manager.Runs(static.UID) {
			t.Errorf("%d sandboxes and containers are left", w.runtime.Left())
		}
	})
}

// TestNobodyCallsAPodStatic that came from the API: it would be spared from eviction, and its status kept from its owner.
func TestNobodyCallsAPodStatic(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		w.create(pod)
		if got := w.get("p").Status.Phase; got != corev1.PodRunning {
			t.Errorf("its phase is %s", got)
		}
		if source := w.manager.Active()[0].Annotations["kubernetes.io/config.source"]; source != "api" {
			t.Errorf("its source is %q", source)
		}
	})
}
