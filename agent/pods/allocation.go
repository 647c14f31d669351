package pods

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/admission"
	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// allocation is what the node has promised to a pod. The pod's spec is what its user wants; while the two differ, a
// resize is pending (KEP-1287). It is nowhere but here and in the pod's status, from which an agent that starts again
// reads it.
type allocation struct {
	// pod is of the pod as a whole, nil if its spec has nothing.
	pod        *corev1.ResourceRequirements
	containers map[string]corev1.ResourceRequirements
	// generation of the pod whose spec this is.
	generation int64
	// pending says why the spec is not allocated; nil if it is.
	pending *status.Pending
}

// resizable are the containers whose CPU and memory may change.
func resizable(pod *corev1.Pod) []*corev1.Container {
	var out []*corev1.Container
	for i := range pod.Spec.InitContainers {
		out = append(out, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return out
}

// take makes the spec the allocation.
func (a *allocation) take(pod *corev1.Pod) {
	*a = allocation{pod: pod.Spec.Resources, containers: map[string]corev1.ResourceRequirements{}, generation: pod.Generation}
	for _, c := range resizable(pod) {
		a.containers[c.Name] = c.Resources
	}
}

// restored is what an earlier agent allocated, as far as the status tells.
func restored(pod *corev1.Pod) *allocation {
	a := &allocation{}
	a.take(pod)
	for _, c := range resizable(pod) {
		s := containerStatus(pod, c.Name)
		if s == nil || s.Resources == nil {
			continue
		}
		was := c.Resources
		was.Requests, was.Limits = s.AllocatedResources, s.Resources.Limits
		a.containers[c.Name] = was
	}
	if now, was := pod.Spec.Resources, pod.Status.Resources; now != nil && was != nil {
		a.pod = now.DeepCopy()
		keepFrom(a.pod.Requests, pod.Status.AllocatedResources)
		keepFrom(a.pod.Limits, was.Limits)
	}
	return a
}

func keepFrom(list, old corev1.ResourceList) {
	for name := range list {
		if q, ok := old[name]; ok {
			list[name] = q
		}
	}
}

// of is the pod with what it was allocated in place of what it wants.
func (a *allocation) of(pod *corev1.Pod) *corev1.Pod {
	if a == nil || a.holds(pod) {
		return pod
	}
	pod = pod.DeepCopy()
	pod.Spec.Resources = a.pod
	for _, c := range resizable(pod) {
		if have, ok := a.containers[c.Name]; ok {
			c.Resources = have
		}
	}
	return pod
}

// holds reports whether the spec is what was allocated.
func (a *allocation) holds(pod *corev1.Pod) bool {
	for _, c := range resizable(pod) {
		if have, ok := a.containers[c.Name]; ok && !sameResources(&have, &c.Resources) {
			return false
		}
	}
	return equality.Semantic.DeepEqual(a.pod, pod.Spec.Resources)
}

// sameResources compares amounts: no limits are the same as an empty list of them.
func sameResources(a, b *corev1.ResourceRequirements) bool {
	return equality.Semantic.DeepEqual(a.Requests, b.Requests) && equality.Semantic.DeepEqual(a.Limits, b.Limits)
}

// allocate gives the pod of w what it wants if the node has it, and returns the pod as it is allocated. Pods that
// wait for a resize are judged in their order whenever one of the node's pods is looked at.
func (m *Manager) allocate(pod *corev1.Pod) (allocated *corev1.Pod, pending *status.Pending, generation int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.allocations[pod.UID]
	if a == nil {
		return pod, nil, pod.Generation
	}
	if m.resizesWait || !a.holds(pod) || a.pending != nil {
		m.resize(pod.UID)
	}
	return a.of(pod), a.pending, a.generation
}

// release forgets a pod, whose share others may have been waiting for. m.mu is held.
func (m *Manager) release(uid types.UID) {
	delete(m.allocations, uid)
	if m.resizesWait {
		m.resize("")
	}
}

// resize judges all resizes that wait, and wakes the workers of those that need no longer, but for asker. m.mu is held.
func (m *Manager) resize(asker types.UID) {
	m.resizesWait = false
	for _, pod := range m.waitingResizes() {
		a := m.allocations[pod.UID]
		was := a.pending
		if why := m.infeasible(pod, a); why != "" {
			a.pending = &status.Pending{Reason: corev1.PodReasonInfeasible, Message: why, Generation: pod.Generation}
			if was == nil || was.Generation != pod.Generation {
				m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, events.ResizeInfeasible, resizeMessage("Infeasible", pod, why))
			}
		} else if why := (admission.Node{Others: m.others(pod.UID), Allocatable: m.Allocatable()}).Room(pod); why != nil {
			a.pending = &status.Pending{Reason: corev1.PodReasonDeferred, Message: why.Message, Generation: pod.Generation}
			m.resizesWait = true
			if was == nil || was.Generation != pod.Generation {
				m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, events.ResizeDeferred, resizeMessage("Deferred", pod, why.Message))
			}
		} else {
			a.take(pod)
			m.Events.Event(events.Pod(pod), corev1.EventTypeNormal, events.ResizeStarted, resizeMessage("started", pod, ""))
		}
		if pod.UID != asker && (was == nil) != (a.pending == nil) {
			m.workers[pod.UID].poke()
		}
	}
}

// waitingResizes are the pods that want something else than they have, in the order in which they get it: those that
// want less; by priority; guaranteed before burstable; the oldest first. m.mu is held.
func (m *Manager) waitingResizes() []*corev1.Pod {
	var out []*corev1.Pod
	for uid, w := range m.workers {
		pod, gone := w.latest()
		a := m.allocations[uid]
		if a == nil || gone || pod.DeletionTimestamp != nil || finished(pod) {
			continue
		}
		if a.holds(pod) {
			a.pending = nil
			continue
		}
		out = append(out, pod)
	}
	slices.SortFunc(out, func(p, q *corev1.Pod) int {
		return cmp.Or(
			compareTruth(m.wantsMore(p), m.wantsMore(q)),
			cmp.Compare(priority(q), priority(p)),
			compareTruth(qos.GetPodQOS(p) != corev1.PodQOSGuaranteed, qos.GetPodQOS(q) != corev1.PodQOSGuaranteed),
			p.CreationTimestamp.Compare(q.CreationTimestamp.Time),
			cmp.Compare(p.UID, q.UID),
		)
	})
	return out
}

// compareTruth puts false first.
func compareTruth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func (m *Manager) wantsMore(pod *corev1.Pod) bool {
	now, want := admission.Requests(m.allocations[pod.UID].of(pod)), admission.Requests(pod)
	return want.Cpu().Cmp(*now.Cpu()) > 0 || want.Memory().Cmp(*now.Memory()) > 0
}

// others are the pods that have a share of the node, with what they were allocated. m.mu is held.
func (m *Manager) others(but types.UID) []*corev1.Pod {
	var out []*corev1.Pod
	for uid, w := range m.workers {
		if p, gone := w.latest(); uid != but && !gone && !finished(p) && !w.isRejected() {
			out = append(out, m.allocations[uid].of(p))
		}
	}
	return out
}

// resizeMessage is the text of an event, in upstream's form.
func resizeMessage(what string, pod *corev1.Pod, problem string) string {
	type share struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	summary := struct {
		Init       []share `json:"initContainers,omitempty"`
		Main       []share `json:"containers,omitempty"`
		Generation int64   `json:"generation"`
		Error      string  `json:"error,omitempty"`
	}{Generation: pod.Generation, Error: problem}
	for i := range pod.Spec.InitContainers {
		summary.Init = append(summary.Init, share{pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Resources})
	}
	for i := range pod.Spec.Containers {
		summary.Main = append(summary.Main, share{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources})
	}
	text, err := json.Marshal(summary)
	if err != nil {
		return "Pod resize " + what
	}
	return fmt.Sprintf("Pod resize %s: %s", what, text)
}
