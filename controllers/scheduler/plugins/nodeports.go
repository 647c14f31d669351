package plugins

import (
	"fmt"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodePorts keeps two pods off the same host port.
type NodePorts struct{}

// Name is the plugin's name.
func (NodePorts) Name() string { return "NodePorts" }

// Wakes: a pod left its port.
func (NodePorts) Wakes() plugin.Event { return plugin.NodeAdded | plugin.PodGone }

// Filter looks for a port already taken.
func (NodePorts) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	if len(pod.HostPorts) == 0 {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		for _, want := range pod.HostPorts {
			if _, taken := node.TakenPort(want); taken {
				return plugin.Reject("node(s) didn't have free ports for the requested pod ports",
					fmt.Sprintf("host port %d/%s were free", want.Port, want.Protocol))
			}
		}
		return nil
	}
}
