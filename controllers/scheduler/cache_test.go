package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

func TestCacheTellsWhatChanged(t *testing.T) {
	c := newCache()
	change := func(change func(*corev1.Node)) *corev1.Node {
		n := testNode("n", "z", "4", "8Gi")
		change(n)
		return n
	}
	steps := []struct {
		name string
		node *corev1.Node
		want plugin.Event
	}{
		{"arrival", change(func(*corev1.Node) {}), plugin.NodeAdded},
		{"heartbeat", change(func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}} }), 0},
		{"label", change(func(n *corev1.Node) { n.Labels["x"] = "y" }), plugin.NodeLabels},
		{"cordon", change(func(n *corev1.Node) { n.Labels["x"], n.Spec.Unschedulable = "y", true }), plugin.NodeTaints},
		{"all back", change(func(*corev1.Node) {}), plugin.NodeLabels | plugin.NodeTaints},
		{"features", change(func(n *corev1.Node) { n.Status.DeclaredFeatures = []string{"f"} }), plugin.NodeFeatures},
		{"growth", testNode("n", "z", "8", "8Gi"), plugin.NodeAllocatable | plugin.NodeFeatures},
	}
	for _, step := range steps {
		if got := c.setNode(step.node); got != step.want {
			t.Errorf("%s: events %b, want %b", step.name, got, step.want)
		}
	}
	before := c.generation
	if c.setNode(testNode("n", "z", "8", "8Gi")); c.generation != before {
		t.Error("an unchanged node got a new generation")
	}
}

func TestCacheConfirmsAndForgets(t *testing.T) {
	c := newCache()
	c.setNode(testNode("n", "z", "4", "8Gi"))
	pod := testPod("a", "1", "1Gi")
	c.assume(plugin.NewPod(pod), c.node("n"))
	before := c.generation
	if events := c.setPod(bound(pod, "n")); events != 0 || c.generation != before {
		t.Errorf("confirming what was assumed changed something: events %b", events)
	}
	if c.forget(pod.UID) != 0 || !c.placed(pod.UID) {
		t.Error("a confirmed pod was forgotten")
	}
	if c.removePod(pod.UID) != plugin.PodGone || c.node("n").Requested.MilliCPU != 0 {
		t.Error("a removed pod still counts")
	}
}

func TestCacheConfirmedElsewhere(t *testing.T) {
	c := newCache()
	c.setNode(testNode("n1", "z", "4", "8Gi"))
	c.setNode(testNode("n2", "z", "4", "8Gi"))
	pod := testPod("a", "1", "1Gi")
	c.assume(plugin.NewPod(pod), c.node("n1"))
	c.setPod(bound(pod, "n2")) // another scheduler was faster
	if c.node("n1").Requested.MilliCPU != 0 || c.node("n2").Requested.MilliCPU != 1000 {
		t.Error("the pod does not count on the node it is bound to")
	}
}

func TestCachePodsBeforeTheirNode(t *testing.T) {
	c := newCache()
	c.setPod(bound(testPod("a", "1", ""), "late"))
	if c.known != 0 {
		t.Error("a node nobody has seen is known")
	}
	c.setNode(testNode("late", "z", "4", "8Gi"))
	if got := c.node("late").Requested.MilliCPU; got != 1000 {
		t.Errorf("%dm cpu requested, want 1000m", got)
	}
	c.removeNode("late")
	if len(c.slots) != 1 {
		t.Error("the node's entry went away before its pod")
	}
	c.removePod("uid-a")
	if len(c.slots) != 0 || len(c.free) != 1 {
		t.Error("the entry of an empty, removed node stayed")
	}
}
