package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

func TestPodsWhoseHostPortIsTakenAreRejected(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		create := func(name string, port corev1.ContainerPort) corev1.PodStatus {
			p := newPod(name, "web")
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1}, port}
			w.create(p)
			return w.get(name).Status
		}
		if got := create("p", corev1.ContainerPort{HostPort: 80}); got.Phase != corev1.PodRunning {
			t.Errorf("p: %s %s", got.Phase, got.Message)
		}
		if got := create("q", corev1.ContainerPort{HostPort: 80, HostIP: "127.0.0.1"}); got.Reason != "NodePorts" || got.Phase != corev1.PodFailed {
			t.Errorf("q: %s %s %s", got.Phase, got.Reason, got.Message)
		}
		if got := create("r", corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolUDP}); got.Phase != corev1.PodRunning {
			t.Errorf("r: %s %s", got.Phase, got.Message)
		}
	})
}

// TestAPodThatAsksForWhatTheNodeDoesNotDeclare: the scheduler did not choose this node.
func TestAPodThatAsksForWhatTheNodeDoesNotDeclare(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.manager.Features = []string{}
		p := newPod("p", "web")
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		w.create(p)
		if got := w.get("p").Status; got.Phase != corev1.PodFailed || got.Reason != "PodFeatureUnsupported" {
			t.Errorf("%s %s %s", got.Phase, got.Reason, got.Message)
		}
		q := newPod("q", "web")
		w.create(q)
		q = w.get("q")
		limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		q.Generation++
		q.Spec.Resources = &corev1.ResourceRequirements{Requests: limits, Limits: limits}
		if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), q, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if !w.events.has("FailedNodeDeclaredFeaturesCheck Pod requires node features that are not available: InPlacePodLevel") {
			t.Errorf("events:\n%s", w.events)
		}
	})
}
