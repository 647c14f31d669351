package node

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
)

// resources fills in what the node has and can give.
func (k *keeper) resources(s *corev1.NodeStatus) {
	extended := k.extended(s.Capacity)
	s.Capacity = k.capacity()
	s.Allocatable = s.Capacity.DeepCopy()
	if k.Allocatable != nil {
		s.Allocatable = k.Allocatable(s.Capacity)
	}
	hugepages.Reserve(s.Allocatable, s.Capacity)
	maps.Copy(s.Capacity, extended)
	maps.Copy(s.Allocatable, extended.DeepCopy())
	if k.Devices != nil {
		capacity, allocatable := k.Devices()
		maps.Copy(s.Capacity, capacity)
		maps.Copy(s.Allocatable, allocatable)
	}
}

// extended are the resources that others have written into the Node's status: an administrator, or an earlier agent for a device
// plugin. They stay; if they are of an earlier machine, as zero until a plugin tells of them.
func (k *keeper) extended(capacity corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range capacity {
		if !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) {
			continue
		}
		if k.ForgetExtended && k.written.IsZero() {
			amount = *resource.NewQuantity(0, resource.DecimalSI)
		}
		out[name] = amount
	}
	return out
}
