package pods

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// A container for debugging joins a pod that runs, ends, and is not started again,
// whatever the pod's policy says; the pod does not mind.
func TestEphemeralContainerRunsOnce(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}, "look": {ExitAfter: time.Minute, ExitCode: 3}}, func(w *world) {
		w.create(newPod("p", "web"))
		p := w.get("p")
		p.Generation++
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "look", ImagePullPolicy: corev1.PullIfNotPresent}}}
		if _, err := w.client.CoreV1().Pods("default").Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
		w.settle()
		if s := w.get("p").Status.EphemeralContainerStatuses; len(s) != 1 || s[0].State.Running == nil || s[0].Ready {
			w.t.Fatalf("status at first: %+v", s)
		}
		time.Sleep(time.Hour)
		p = w.get("p")
		if s := p.Status.EphemeralContainerStatuses[0]; s.State.Terminated == nil || s.State.Terminated.ExitCode != 3 || s.RestartCount != 0 {
			t.Errorf("status after its end: %+v", s)
		}
		if p.Status.Phase != corev1.PodRunning || condition(p, corev1.PodReady) != corev1.ConditionTrue {
			t.Errorf("phase %s, ready %s", p.Status.Phase, condition(p, corev1.PodReady))
		}
		starts := strings.Count(strings.Join(w.runtime.Calls(), "\n"), "start ")
		if starts != 2 {
			t.Errorf("%d containers were started, want the pod's own and one", starts)
		}
		w.stopAgent()
		w.startAgent() // remembers that it ran
		time.Sleep(time.Hour)
		if now := strings.Count(strings.Join(w.runtime.Calls(), "\n"), "start "); now != starts {
			t.Errorf("%d starts after the agent's, want none", now-starts)
		}
	})
}
