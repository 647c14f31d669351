package podwarnings

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const noPods = "%s: a null labelSelector results in matching no pod"

// placementWarnings find labels that nodes have no longer in what chooses a node, and rules of spread about no pods.
func placementWarnings(spec *corev1.PodSpec, at *field.Path) (warnings []string) {
	for _, label := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if message, deprecated := DeprecatedNodeLabel(label); deprecated {
			warnings = append(warnings, fmt.Sprintf("%s: %s", at.Child("nodeSelector").Key(label), message))
		}
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		warnings = append(warnings, nodeAffinityWarnings(spec.Affinity.NodeAffinity, at.Child("affinity", "nodeAffinity"))...)
	}
	for i, spread := range spec.TopologySpreadConstraints {
		here := at.Child("topologySpreadConstraints").Index(i)
		if message, deprecated := DeprecatedNodeLabel(spread.TopologyKey); deprecated {
			warnings = append(warnings, fmt.Sprintf("%s: %s is %s", here.Child("topologyKey"), spread.TopologyKey, message))
		}
		if spread.LabelSelector == nil {
			warnings = append(warnings, fmt.Sprintf(noPods, here.Child("labelSelector")))
		}
	}
	return warnings
}

func nodeAffinityWarnings(affinity *corev1.NodeAffinity, at *field.Path) (warnings []string) {
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms := at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for i := range required.NodeSelectorTerms {
			warnings = append(warnings, NodeTerm(&required.NodeSelectorTerms[i], false, terms.Index(i))...)
		}
	}
	preferred := affinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range preferred {
		here := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference")
		warnings = append(warnings, NodeTerm(&preferred[i].Preference, true, here)...)
	}
	return warnings
}

// NodeTerm are the warnings of a term that chooses nodes by labels which they have no longer, and, if values are judged, by values that no
// label has.
func NodeTerm(term *corev1.NodeSelectorTerm, values bool, at *field.Path) (warnings []string) {
	for i, expression := range term.MatchExpressions {
		here := at.Child("matchExpressions").Index(i)
		if message, deprecated := DeprecatedNodeLabel(expression.Key); deprecated {
			warnings = append(warnings, fmt.Sprintf("%s: %s is %s", here.Child("key"), expression.Key, message))
		}
		for j, value := range expression.Values {
			if !values {
				break
			}
			for _, message := range validation.IsValidLabelValue(value) {
				warnings = append(warnings, fmt.Sprintf("%s: %s is invalid, %s", here.Child("values").Index(j), value, message))
			}
		}
	}
	return warnings
}

// affinityWarnings find rules about other pods that select none.
func affinityWarnings(spec *corev1.PodSpec, at *field.Path) (warnings []string) {
	judge := func(selector *metav1.LabelSelector, at *field.Path) {
		if selector == nil {
			warnings = append(warnings, fmt.Sprintf(noPods, at.Child("labelSelector")))
		}
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, at *field.Path) {
		for i := range required {
			judge(required[i].LabelSelector, at.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))
		}
		for i := range preferred {
			here := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm")
			judge(preferred[i].PodAffinityTerm.LabelSelector, here)
		}
	}
	if spec.Affinity == nil {
		return nil
	}
	at = at.Child("affinity")
	if with := spec.Affinity.PodAffinity; with != nil {
		terms(with.RequiredDuringSchedulingIgnoredDuringExecution, with.PreferredDuringSchedulingIgnoredDuringExecution, at.Child("podAffinity"))
	}
	if without := spec.Affinity.PodAntiAffinity; without != nil {
		terms(without.RequiredDuringSchedulingIgnoredDuringExecution, without.PreferredDuringSchedulingIgnoredDuringExecution,
			at.Child("podAntiAffinity"))
	}
	return warnings
}
