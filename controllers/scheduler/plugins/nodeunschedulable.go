package plugins

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeUnschedulable keeps pods off cordoned nodes, unless they tolerate the taint that stands for the cordon.
type NodeUnschedulable struct{}

// Name is the plugin's name.
func (NodeUnschedulable) Name() string { return "NodeUnschedulable" }

// Wakes: an uncordon arrives with the taints.
func (NodeUnschedulable) Wakes() plugin.Event { return plugin.NodeAdded | plugin.NodeTaints }

// Filter looks at spec.unschedulable.
func (NodeUnschedulable) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if tolerates(pod.Spec.Tolerations, &cordon) {
		return nil
	}
	rejection := plugin.RejectForGood("node(s) were unschedulable", "it were uncordoned")
	return func(node *plugin.Node) *plugin.Rejection {
		if node.Spec.Unschedulable {
			return rejection
		}
		return nil
	}
}
