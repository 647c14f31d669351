package pods

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/events"
	"github.com/setpoint-io/setpoint/agent/eviction"
	"github.com/setpoint-io/setpoint/agent/hugepages"
	"github.com/setpoint-io/setpoint/agent/observed"
	"github.com/setpoint-io/setpoint/agent/podconfig"
	"github.com/setpoint-io/setpoint/agent/status"
)

// admit rejects a pod that sets what is the node's, and one the node has no room
// for: two schedulers, or a pod with nodeName set by hand, may overfill it. A pod
// that was started once is never rejected. m.mu is held.
func (m *Manager) admit(pod *corev1.Pod) *status.Rejection {
	if pod.Status.StartTime != nil || pod.DeletionTimestamp != nil || finished(pod) {
		return nil
	}
	if m.ShuttingDown != nil && m.ShuttingDown() {
		return &status.Rejection{Reason: "NodeShutdown", Message: "Pod was rejected: Pod was rejected as the node is shutting down."}
	}
	if m.Pressure != nil {
		if why := eviction.Admit(pod, m.Pressure()); why != "" {
			return &status.Rejection{Reason: events.Evicted, Message: "Pod was rejected: " + why}
		}
	}
	if err := podconfig.CheckSysctls(pod, m.UnsafeSysctls); err != nil {
		return &status.Rejection{Reason: "SysctlForbidden", Message: "Pod was rejected: " + err.Error()}
	}
	others := m.others(pod.UID)
	if rejection := admit(pod, others, m.Allocatable()); rejection != nil {
		rejection.Message = "Pod was rejected: " + rejection.Message
		return rejection
	}
	if rejection := m.admitExtended(pod, others); rejection != nil {
		return rejection
	}
	return admitPorts(pod, others)
}

// admitExtended judges resources of others that the Node lists, such as those that an administrator has written there. Those of device
// plugins are judged when devices are chosen.
func (m *Manager) admitExtended(pod *corev1.Pod, others []*corev1.Pod) *status.Rejection {
	allocatable, wanted := m.Allocatable(), requests(pod)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		limit, listed := allocatable[name]
		if !strings.Contains(string(name), "/") || !listed || m.Devices != nil && m.Devices.Manages(name) {
			continue
		}
		want, used := wanted[name], resource.Quantity{}
		for _, p := range others {
			used.Add(requests(p)[name])
		}
		if want.Value()+used.Value() > limit.Value() {
			rejection := outOf(name, want.Value(), used.Value(), limit.Value())
			rejection.Message = "Pod was rejected: " + rejection.Message
			return rejection
		}
	}
	return nil
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// admit compares what pod requests with what others leave. A resource the node
// does not list is not checked.
func admit(pod *corev1.Pod, others []*corev1.Pod, allocatable corev1.ResourceList) *status.Rejection {
	if limit, ok := allocatable[corev1.ResourcePods]; ok && int64(len(others)) >= limit.Value() {
		return outOf(corev1.ResourcePods, 1, int64(len(others)), limit.Value())
	}
	used := corev1.ResourceList{}
	for _, p := range others {
		add(used, requests(p))
	}
	wanted := requests(pod)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		limit, ok := allocatable[name]
		want := wanted[name]
		if !judged(name, ok, allocatable) || want.IsZero() {
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

// admitPorts compares host ports with those of others, as the kubelet does: reason and message are its own.
func admitPorts(pod *corev1.Pod, others []*corev1.Pod) *status.Rejection {
	for want := range podconfig.HostPorts(pod) {
		for _, other := range others {
			for taken := range podconfig.HostPorts(other) {
				if samePort(want, taken) {
					return &status.Rejection{Reason: "NodePorts",
						Message: "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
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

// orphan is what is left of a pod whose API object is gone.
func orphan(key observed.Key, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: key.UID},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	if key.GraceSeconds >= 0 {
		pod.Spec.TerminationGracePeriodSeconds = &key.GraceSeconds
	}
	return pod
}

// ignoreGone accepts answers that mean "another pod has the name by now".
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
