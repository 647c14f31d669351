package simulated

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// allocate is the pod with what its node gives it: what its spec says, or, while the node does not have that, what it had. Its
// status is all that tells what it had. pending says why it waits; nil if it does not.
func (f *fleet) allocate(pod *corev1.Pod) (given *corev1.Pod, pending *corev1.PodCondition) {
	had := allocated(pod)
	if had == pod {
		return pod, nil
	}
	node, err := f.nodes.Get(pod.Spec.NodeName)
	if err != nil {
		return pod, nil // a Node that its agent does not see has no bounds
	}
	has := node.Status.Allocatable
	pending = &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation}
	if pending.Message = lacking(had, pod, has, nil); pending.Message != "" {
		pending.Reason = corev1.PodReasonInfeasible
		return had, pending
	}
	if pending.Message = lacking(had, pod, has, f.neighbours(pod)); pending.Message != "" {
		pending.Reason = corev1.PodReasonDeferred
		return had, pending
	}
	return pod, nil
}

// allocated is the pod with what its status says that it has in place of what its spec says; the pod itself if it has been given
// nothing yet.
func allocated(pod *corev1.Pod) *corev1.Pod {
	if pod.Status.Phase != corev1.PodRunning || !tellsResources(pod) {
		return pod
	}
	had := pod.DeepCopy()
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, c := range containersOf(had) {
		i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if i >= 0 && statuses[i].Resources != nil {
			c.Resources.Requests, c.Resources.Limits = statuses[i].AllocatedResources, statuses[i].Resources.Limits
		}
	}
	if whole := had.Spec.Resources; whole != nil && pod.Status.Resources != nil {
		keep(whole.Requests, pod.Status.AllocatedResources)
		keep(whole.Limits, pod.Status.Resources.Limits)
	}
	return had
}

func containersOf(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}

func keep(list, old corev1.ResourceList) {
	for name := range list {
		if amount, ok := old[name]; ok {
			list[name] = amount
		}
	}
}

// neighbours are the pods that share a node with a pod, with what they have.
func (f *fleet) neighbours(pod *corev1.Pod) []*corev1.Pod {
	found, err := f.byNode.ByIndex(nodeIndex, pod.Spec.NodeName)
	if err != nil {
		return nil // the index is there
	}
	var all []*corev1.Pod
	for _, obj := range found {
		other, ok := obj.(*corev1.Pod)
		if ok && other.UID != pod.UID && !finished(other) {
			all = append(all, allocated(other))
		}
	}
	return all
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// lacking says, in a kubelet's words, what a node does not have beside others that a pod wants more of than it had.
func lacking(had, pod *corev1.Pod, has corev1.ResourceList, others []*corev1.Pod) string {
	before, wanted := requests(had), requests(pod)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		more, was := wanted[name], before[name]
		if more.Cmp(was) <= 0 {
			continue
		}
		used := resourceSum(others, name)
		if capacity := has[name]; more.MilliValue()+used > capacity.MilliValue() {
			unit := int64(1000)
			if name == corev1.ResourceCPU {
				unit = 1
			}
			return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, more.MilliValue()/unit, used/unit, capacity.MilliValue()/unit)
		}
	}
	return ""
}

func requests(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// resourceSum is what pods have of a resource together, in thousandths.
func resourceSum(pods []*corev1.Pod, name corev1.ResourceName) (sum int64) {
	for _, pod := range pods {
		amount := requests(pod)[name]
		sum += amount.MilliValue()
	}
	return sum
}

// resizes says whether a resize has waited and need no longer.
func (f *fleet) resizes(pod *corev1.Pod) bool {
	if conditionOf(pod, corev1.PodResizePending) == nil {
		return false
	}
	_, pending := f.allocate(pod)
	return pending == nil
}

func tellsResources(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Resources != nil
}

// givesUp says whether a pod that ran has ended, or has other resources: those that wait may have them.
func givesUp(before, after *corev1.Pod) bool {
	return before.Status.Phase == corev1.PodRunning &&
		(finished(after) || before.Status.ObservedGeneration != after.Status.ObservedGeneration)
}

// tellResources fills in what the pod was given, and why it waits for more.
func tellResources(s *corev1.PodStatus, given *corev1.Pod, pending *corev1.PodCondition, now metav1.Time) {
	tell := func(statuses []corev1.ContainerStatus, containers []corev1.Container) {
		for i := range statuses {
			r := containers[i].Resources.DeepCopy()
			statuses[i].AllocatedResources, statuses[i].Resources = r.Requests, r
		}
	}
	tell(s.InitContainerStatuses, given.Spec.InitContainers)
	tell(s.ContainerStatuses, given.Spec.Containers)
	s.AllocatedResources = requests(given)
	s.Resources = &corev1.ResourceRequirements{
		Requests: s.AllocatedResources, Limits: resourcehelper.PodLimits(given, resourcehelper.PodResourcesOptions{}),
	}
	if pending == nil {
		return
	}
	pending.LastTransitionTime = now
	if old := conditionOf(given, corev1.PodResizePending); old != nil {
		pending.LastTransitionTime = old.LastTransitionTime
	}
	s.Conditions = append(s.Conditions, *pending)
}
