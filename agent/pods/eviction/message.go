package eviction

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// message says why pod is evicted, in upstream's words: what the node lacks, and which containers use more than they request.
func message(t Threshold, seen Observations, pod *corev1.Pod, u usage) string {
	var b strings.Builder
	k, _ := kindOf(t.Signal)
	fmt.Fprintf(&b, "The node was low on resource: %v. ", k.resource)
	if o, ok := seen[t.Signal]; ok {
		fmt.Fprintf(&b, "Threshold quantity: %v, available: %v. ", t.Value.quantity(o.Capacity), resource.NewQuantity(o.Available, k.format))
	}
	live, isLive := u.live[pod.UID]
	if request, ok := podRequest(pod, k.resource); ok && isLive {
		larger(&b, "Pod", pod.Name, live.MemoryBytes, request, k.resource)
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		request := c.Resources.Requests[k.resource]
		if used, ok := u.ofContainer(pod, c.Name, k.resource); ok && used > request.Value() {
			larger(&b, "Container", c.Name, used, request, k.resource)
		}
	}
	return b.String()
}

// podRequest is what the pod as a whole requests of memory.
func podRequest(pod *corev1.Pod, name corev1.ResourceName) (resource.Quantity, bool) {
	if name != corev1.ResourceMemory || !resourcehelper.IsPodLevelResourcesSet(pod) {
		return resource.Quantity{}, false
	}
	q, ok := pod.Spec.Resources.Requests[name]
	return q, ok
}

func larger(b *strings.Builder, what, name string, used int64, request resource.Quantity, of corev1.ResourceName) {
	fmt.Fprintf(b, "%s %s was using %s, request is %s, has larger consumption of %v. ",
		what, name, resource.NewQuantity(used, resource.BinarySI), request.String(), of)
}

// ofContainer is what one container uses; ok is false for what is not counted by container.
func (u usage) ofContainer(pod *corev1.Pod, name string, of corev1.ResourceName) (used int64, ok bool) {
	switch of {
	case corev1.ResourceMemory:
		used, ok = u.live[pod.UID].Containers[name]
	case corev1.ResourceEphemeralStorage:
		var layer Files
		layer, ok = u.files[pod.UID].Layers[name]
		used = layer.Bytes + u.files[pod.UID].Logs[name].Bytes
	}
	return used, ok
}
