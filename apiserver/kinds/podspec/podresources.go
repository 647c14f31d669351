package podspec

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// CompletePodResources completes resources that are given for the whole pod, from what its containers say together. It runs
// after admission, which may have added containers or their resources. Limits of huge pages come first, as requests follow
// them; other limits come last, as none is below its request.
func CompletePodResources(spec *corev1.PodSpec) {
	whole := spec.Resources
	if whole == nil || len(whole.Requests) == 0 && len(whole.Limits) == 0 {
		return
	}
	containers := &corev1.Pod{Spec: corev1.PodSpec{Containers: spec.Containers, InitContainers: spec.InitContainers}}
	limits := resourcehelper.AggregateContainerLimits(containers, resourcehelper.PodResourcesOptions{})
	whole.Limits, whole.Requests = maps.Clone(whole.Limits), maps.Clone(whole.Requests) // the pod that is resized may share them
	completeHugePages(whole, limits)
	completeRequests(whole, resourcehelper.AggregateContainerRequests(containers, resourcehelper.PodResourcesOptions{}))
	completeLimits(whole, limits, spec)
}

// completeHugePages limits the pod to the huge pages of its containers.
func completeHugePages(whole *corev1.ResourceRequirements, limits corev1.ResourceList) {
	for name, limit := range limits {
		_, asked := whole.Requests[name]
		if !asked && rule.HugePage(name) && resourcehelper.IsSupportedPodLevelResource(name) {
			fill(&whole.Limits, name, limit)
		}
	}
}

// completeRequests asks for what the containers ask for, and for what nothing asks for, the limit. Huge pages cannot
// be overcommitted and follow the limits only.
func completeRequests(whole *corev1.ResourceRequirements, requests corev1.ResourceList) {
	for name, request := range requests {
		if !rule.HugePage(name) && resourcehelper.IsSupportedPodLevelResource(name) {
			fill(&whole.Requests, name, request)
		}
	}
	for name, limit := range whole.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) {
			fill(&whole.Requests, name, limit)
		}
	}
}

// completeLimits limits the pod where all its containers are limited, to no less than it asks for.
func completeLimits(whole *corev1.ResourceRequirements, limits corev1.ResourceList, spec *corev1.PodSpec) {
	for name, request := range whole.Requests {
		limit, ok := limits[name]
		if !ok || !resourcehelper.IsSupportedPodLevelResource(name) || !allLimited(spec, name) {
			continue
		}
		if request.Cmp(limit) > 0 {
			limit = request
		}
		fill(&whole.Limits, name, limit)
	}
}

func allLimited(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	limited := true
	visitContainers(spec, func(c *corev1.Container) {
		_, ok := c.Resources.Limits[name]
		limited = limited && ok
	})
	return limited
}

// fill sets what the list does not say.
func fill(list *corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	if _, set := (*list)[name]; set {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = amount.DeepCopy()
}
