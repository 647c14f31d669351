package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Node is what pods are judged by.
type Node struct {
	// Others are the pods that it has.
	Others []*corev1.Pod
	// Allocatable is what all pods can have.
	Allocatable corev1.ResourceList
	// Managed reports whether a resource is given out as devices, which is judged when they are chosen; nil: none is.
	Managed func(corev1.ResourceName) bool
	// Features are those that the node declares; nil: that is not judged.
	Features []string
}

// Judge says why the node does not take the pod; nil if it does.
func (n Node) Judge(pod *corev1.Pod) *status.Rejection {
	for _, rule := range []func(*corev1.Pod) *status.Rejection{n.Room, n.extended, n.ports, n.features} {
		if why := rule(pod); why != nil {
			return why
		}
	}
	return nil
}

// Requests are what the whole pod asks for.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// Room compares what pod requests with what others leave. A resource the node
// does not list is not checked.
func (n Node) Room(pod *corev1.Pod) *status.Rejection {
	if limit, ok := n.Allocatable[corev1.ResourcePods]; ok && int64(len(n.Others)) >= limit.Value() {
		return outOf(corev1.ResourcePods, 1, int64(len(n.Others)), limit.Value())
	}
	used := corev1.ResourceList{}
	for _, p := range n.Others {
		add(used, Requests(p))
	}
	wanted := Requests(pod)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		limit, ok := n.Allocatable[name]
		want := wanted[name]
		if !judged(name, ok, n.Allocatable) || want.IsZero() {
			continue
		}
		have := used[name]
		sum := have.DeepCopy()
		sum.Add(want)
		if sum.Cmp(limit) > 0 && name == corev1.ResourceCPU {
			return outOf(name, want.MilliValue(), have.MilliValue(), limit.MilliValue())
		} else if sum.Cmp(limit) > 0 {
			return outOf(name, want.Value(), have.Value(), limit.Value())
		}
	}
	return nil
}

// judged are CPU and memory if the node lists them, and huge pages of any size if the node is known: of a size that it does not list it has
// none.
func judged(name corev1.ResourceName, listed bool, allocatable corev1.ResourceList) bool {
	return listed && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) || hugepages.Is(name) && len(allocatable) > 0
}

// extended judges resources of others that the Node lists, such as those that an administrator has written there. Those of device
// plugins are judged when devices are chosen.
func (n Node) extended(pod *corev1.Pod) *status.Rejection {
	wanted := Requests(pod)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		limit, listed := n.Allocatable[name]
		if !strings.Contains(string(name), "/") || !listed || n.Managed != nil && n.Managed(name) {
			continue
		}
		want, used := wanted[name], resource.Quantity{}
		for _, p := range n.Others {
			used.Add(Requests(p)[name])
		}
		if want.Value()+used.Value() > limit.Value() {
			return outOf(name, want.Value(), used.Value(), limit.Value())
		}
	}
	return nil
}

// ports compares host ports with those of others, as the kubelet does: reason and message are its own.
func (n Node) ports(pod *corev1.Pod) *status.Rejection {
	for want := range podconfig.HostPorts(pod) {
		for _, other := range n.Others {
			for taken := range podconfig.HostPorts(other) {
				if samePort(want, taken) {
					return &status.Rejection{Reason: "NodePorts",
						Message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	return nil
}

func samePort(p, q *corev1.ContainerPort) bool {
	const tcp = corev1.ProtocolTCP
	return p.HostPort == q.HostPort && cmp.Or(p.Protocol, tcp) == cmp.Or(q.Protocol, tcp) &&
		(p.HostIP == q.HostIP || onAllAddresses(p) || onAllAddresses(q))
}

func onAllAddresses(p *corev1.ContainerPort) bool { return p.HostIP == "" || p.HostIP == "0.0.0.0" }

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

func outOf(name corev1.ResourceName, want, used, limit int64) *status.Rejection {
	return &status.Rejection{
		Reason: "OutOf" + string(name),
		Message: fmt.Sprintf(
			"Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name,
			want,
			used,
			limit,
		),
	}
}
