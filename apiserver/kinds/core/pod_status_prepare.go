package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// preparePodStatus keeps what a status update may not touch. Owner references are
// among it because old node agents send damaged ones.
func preparePodStatus(pod, old *corev1.Pod) {
	pod.Spec = old.Spec
	pod.DeletionTimestamp = old.DeletionTimestamp
	pod.OwnerReferences = old.OwnerReferences
	rule.Default(&pod.Status.QOSClass, old.Status.QOSClass)
	keepClaims(&pod.Status, &old.Status)
	keepGenerations(&pod.Status, &old.Status)
}

// keepClaims keeps what the control plane says about devices from node agents that do not know these fields. An empty
// list clears one.
func keepClaims(status, was *corev1.PodStatus) {
	if status.ResourceClaimStatuses == nil {
		status.ResourceClaimStatuses = was.ResourceClaimStatuses
	}
	if status.ExtendedResourceClaimStatus == nil {
		status.ExtendedResourceClaimStatus = was.ExtendedResourceClaimStatus
	}
	if status.NodeAllocatableResourceClaimStatuses == nil {
		status.NodeAllocatableResourceClaimStatuses = was.NodeAllocatableResourceClaimStatuses
	}
}

// keepGenerations keeps the generations that a client does not send, that of each condition by its type. A type may
// occur several times; each takes the next of those that were there.
func keepGenerations(status, was *corev1.PodStatus) {
	rule.Default(&status.ObservedGeneration, was.ObservedGeneration)
	before := map[corev1.PodConditionType][]int64{}
	for _, c := range was.Conditions {
		before[c.Type] = append(before[c.Type], c.ObservedGeneration)
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if generations := before[c.Type]; len(generations) > 0 {
			rule.Default(&c.ObservedGeneration, generations[0])
			before[c.Type] = generations[1:]
		}
	}
}
