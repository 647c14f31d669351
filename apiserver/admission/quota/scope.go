package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

// inScopes reports whether a quota speaks of an object. A quota without scopes speaks
// of all; one with scopes only of pods and claims that are in each of them.
func inScopes(q *corev1.ResourceQuota, obj kind.Object) bool {
	for _, r := range requirements(q) {
		if !inScope(r, obj) {
			return false
		}
	}
	return true
}

// requirements are the scopes of a quota, in one form.
func requirements(q *corev1.ResourceQuota) (all []corev1.ScopedResourceSelectorRequirement) {
	for _, scope := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

func inScope(r corev1.ScopedResourceSelectorRequirement, obj kind.Object) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		return podInScope(r, o)
	case *corev1.PersistentVolumeClaim:
		return r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass && selects(r, attributeClasses(o)...)
	default:
		return false
	}
}

func podInScope(r corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminates(pod)
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminates(pod)
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		if pod.Spec.PriorityClassName == "" {
			return selects(r)
		}
		return selects(r, pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return looksElsewhere(pod)
	default:
		return false
	}
}

// selects applies a requirement to the values that an object has, if any.
func selects(r corev1.ScopedResourceSelectorRequirement, values ...string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return len(values) > 0
	case corev1.ScopeSelectorOpDoesNotExist:
		return len(values) == 0
	case corev1.ScopeSelectorOpIn:
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(r.Values, v) })
	case corev1.ScopeSelectorOpNotIn:
		return len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(r.Values, v) })
	default:
		return false
	}
}

func terminates(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

// bestEffort: the pod asks for no share of processors and memory, nor bounds it.
func bestEffort(pod *corev1.Pod) bool {
	all := []corev1.ResourceRequirements{}
	if pod.Spec.Resources != nil {
		all = append(all, *pod.Spec.Resources)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, c.Resources)
	}
	return !slices.ContainsFunc(all, func(r corev1.ResourceRequirements) bool {
		return !r.Requests.Cpu().IsZero() || !r.Requests.Memory().IsZero() || !r.Limits.Cpu().IsZero() || !r.Limits.Memory().IsZero()
	})
}

// looksElsewhere reports whether a pod's place depends on pods of other namespaces.
func looksElsewhere(pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for _, p := range preferred {
			terms = append(terms, p.PodAffinityTerm)
		}
	}
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// attributeClasses are those that a claim has, wants or is on the way to.
func attributeClasses(claim *corev1.PersistentVolumeClaim) []string {
	var names []string
	for _, name := range []*string{claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName} {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	if m := claim.Status.ModifyVolumeStatus; m != nil && m.TargetVolumeAttributesClassName != "" {
		names = append(names, m.TargetVolumeAttributesClassName)
	}
	return names
}
