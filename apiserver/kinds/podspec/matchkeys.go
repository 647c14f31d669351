package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ResolveMatchKeys turns matchLabelKeys and mismatchLabelKeys of a new pod into
// requirements with the pod's own values, so that schedulers need the selectors
// only. A pod's labels may change later; what it was placed beside may not.
func ResolveMatchKeys(pod *corev1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		requireKeys(c.LabelSelector, pod.Labels, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	if a := affinity.PodAffinity; a != nil {
		resolveTerms(pod.Labels, a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		resolveTerms(pod.Labels, a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func resolveTerms(labels map[string]string, must []corev1.PodAffinityTerm, may []corev1.WeightedPodAffinityTerm) {
	for i := range must {
		resolveTerm(labels, &must[i])
	}
	for i := range may {
		resolveTerm(labels, &may[i].PodAffinityTerm)
	}
}

func resolveTerm(labels map[string]string, term *corev1.PodAffinityTerm) {
	requireKeys(term.LabelSelector, labels, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
	requireKeys(term.LabelSelector, labels, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
}

// requireKeys skips keys that the pod does not have: they say nothing about it.
// A retried create comes here again, so a requirement is added once.
func requireKeys(selector *metav1.LabelSelector, labels map[string]string, keys []string, op metav1.LabelSelectorOperator) {
	if selector == nil {
		return
	}
	for _, key := range keys {
		value, found := labels[key]
		requirement := metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}}
		if found && !slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return equality.Semantic.DeepEqual(r, requirement)
		}) {
			selector.MatchExpressions = append(selector.MatchExpressions, requirement)
		}
	}
}

// validateMatchKeys judges keys before and after ResolveMatchKeys: a key that the selector names besides the requirement
// made of it is named twice.
func validateMatchKeys(match, mismatch []string, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := validateKeys(match, selector, path.Child("matchLabelKeys"))
	errs = append(errs, validateKeys(mismatch, selector, path.Child("mismatchLabelKeys"))...)
	errs = append(errs, validateTwiceNamed(match, selector, path)...)
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			errs = append(
				errs,
				field.Invalid(path.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"),
			)
		}
	}
	return errs
}

func validateKeys(keys []string, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if len(keys) > 0 && selector == nil {
		return field.ErrorList{field.Forbidden(path, "must not be specified when labelSelector is not set")}
	}
	var errs field.ErrorList
	for i, key := range keys {
		errs = append(errs, metav1validation.ValidateLabelName(key, path.Index(i))...)
	}
	return errs
}

func validateTwiceNamed(match []string, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var errs field.ErrorList
	named := sets.KeySet(selector.MatchLabels)
	for _, requirement := range selector.MatchExpressions {
		if i := slices.Index(match, requirement.Key); i >= 0 && named.Has(requirement.Key) {
			errs = append(errs, field.Invalid(path.Index(i), requirement.Key, "exists in both matchLabelKeys and labelSelector"))
		}
		named.Insert(requirement.Key)
	}
	return errs
}
