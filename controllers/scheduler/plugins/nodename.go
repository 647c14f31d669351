package plugins

import "github.com/setpoint-io/setpoint/controllers/scheduler/plugin"

// NodeName keeps a pod that names its node to that node.
type NodeName struct{}

// Name is the plugin's name.
func (NodeName) Name() string { return "NodeName" }

// Wakes: only the arrival of the node itself helps.
func (NodeName) Wakes() plugin.Event { return plugin.NodeAdded }

// Filter compares names.
func (NodeName) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	want := pod.Spec.NodeName
	if want == "" {
		return nil
	}
	rejection := plugin.RejectForGood("node(s) didn't match the requested node name", "the pod asked for this node by name")
	return func(node *plugin.Node) *plugin.Rejection {
		if node.Name == want {
			return nil
		}
		return rejection
	}
}
