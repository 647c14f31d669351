package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

func validateScheduling(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := validateAffinity(spec.Affinity, path.Child("affinity"))
	errs = append(errs, Tolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateSpread(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	errs = append(errs, validateGates(spec.SchedulingGates, path.Child("schedulingGates"))...)
	for i, gate := range spec.ReadinessGates {
		errs = append(errs, rule.QualifiedName(string(gate.ConditionType), path.Child("readinessGates").Index(i).Child("conditionType"))...)
	}
	return errs
}

func validateGates(gates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, gate := range gates {
		errs = append(errs, rule.QualifiedName(gate.Name, path.Index(i))...)
		if seen.Has(gate.Name) {
			errs = append(errs, field.Duplicate(path.Index(i), gate.Name))
		}
		seen.Insert(gate.Name)
	}
	return errs
}

// Tolerations judges a list of tolerations.
func Tolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range tolerations {
		errs = append(errs, validateToleration(toleration, path.Index(i))...)
	}
	return errs
}

func validateToleration(t corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, path.Child("key"))...)
	}
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if bad := utilvalidation.IsValidLabelValue(t.Value); len(bad) > 0 {
			errs = append(errs, field.Invalid(path.Child("operator"), t.Value, strings.Join(bad, ";")))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("operator"), t, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	return append(errs, TaintEffect(t.Effect, true, path.Child("effect"))...)
}

func validateAffinity(affinity *corev1.Affinity, path *field.Path) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	if a := affinity.NodeAffinity; a != nil {
		errs = append(errs, validateNodeAffinity(a, path.Child("nodeAffinity"))...)
	}
	if a := affinity.PodAffinity; a != nil {
		errs = append(
			errs,
			validatePodTerms(
				a.RequiredDuringSchedulingIgnoredDuringExecution,
				a.PreferredDuringSchedulingIgnoredDuringExecution,
				path.Child("podAffinity"),
			)...)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		errs = append(
			errs,
			validatePodTerms(
				a.RequiredDuringSchedulingIgnoredDuringExecution,
				a.PreferredDuringSchedulingIgnoredDuringExecution,
				path.Child("podAntiAffinity"),
			)...)
	}
	return errs
}

const (
	requiredRules  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredRules = "preferredDuringSchedulingIgnoredDuringExecution"
)

func validateNodeAffinity(affinity *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector := affinity.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		errs = append(errs, NodeSelector(selector, path.Child(requiredRules))...)
		errs = append(errs, NodeSelectorValues(selector, path.Child(requiredRules))...) // a preference may name what no label can be
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		term, at := &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(preferredRules).Index(i)
		errs = append(errs, validateWeight(term.Weight, at.Child("weight"))...)
		errs = append(errs, validateNodeTerm(&term.Preference, at.Child("preference"))...)
	}
	return errs
}

// NodeSelector asks for at least one term, and that each can be judged.
func NodeSelector(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	terms := path.Child("nodeSelectorTerms")
	if len(selector.NodeSelectorTerms) == 0 {
		errs = append(errs, field.Required(terms, "must have at least one node selector term"))
	}
	for i := range selector.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(&selector.NodeSelectorTerms[i], terms.Index(i))...)
	}
	return errs
}

// NodeSelectorValues asks of each value that a label could have it.
func NodeSelectorValues(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range selector.NodeSelectorTerms {
		expressions := path.Child("nodeSelectorTerms").Index(i).Child("matchExpressions")
		for j, requirement := range selector.NodeSelectorTerms[i].MatchExpressions {
			for k, value := range requirement.Values {
				errs = append(
					errs,
					rule.Invalid(value, utilvalidation.IsValidLabelValue(value), expressions.Index(j).Child("values").Index(k))...)
			}
		}
	}
	return errs
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight < 1 || weight > 100 {
		return field.ErrorList{field.Invalid(path, weight, "must be in the range 1-100")}
	}
	return nil
}

func validateNodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(term.MatchExpressions[i].Key, at.Child("key"))...)
		errs = append(errs, validateNodeRequirement(&term.MatchExpressions[i], at)...)
	}
	for i := range term.MatchFields {
		errs = append(errs, validateNodeField(&term.MatchFields[i], path.Child("matchFields").Index(i))...)
	}
	return errs
}

// validateNodeField: a node has one field that it is chosen by, its name.
func validateNodeField(requirement *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := path.Child("values")
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(requirement.Values) != 1 {
			errs = append(errs, field.Required(values, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), requirement.Operator, "not a valid selector operator"))
	}
	if requirement.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(path.Child("key"), requirement.Key, "not a valid field selector key"))
	}
	for i, name := range requirement.Values {
		errs = append(errs, rule.Subdomain(name, values.Index(i))...)
	}
	return errs
}

func validateNodeRequirement(requirement *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	values := path.Child("values")
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(requirement.Values) == 0 {
			return field.ErrorList{field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(requirement.Values) > 0 {
			return field.ErrorList{field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(requirement.Values) != 1 {
			return field.ErrorList{field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")}
		}
	default:
		return field.ErrorList{field.Invalid(path.Child("operator"), requirement.Operator, "not a valid selector operator")}
	}
	return nil
}

func validatePodTerms(must []corev1.PodAffinityTerm, may []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range must {
		errs = append(errs, validatePodTerm(&must[i], path.Child(requiredRules).Index(i))...)
	}
	for i := range may {
		at := path.Child(preferredRules).Index(i)
		errs = append(errs, validateWeight(may[i].Weight, at.Child("weight"))...)
		errs = append(errs, validatePodTerm(&may[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	options := metav1validation.LabelSelectorValidationOptions{}
	errs := metav1validation.ValidateLabelSelector(term.LabelSelector, options, path.Child("labelSelector"))
	errs = append(errs, metav1validation.ValidateLabelSelector(term.NamespaceSelector, options, path.Child("namespaceSelector"))...)
	for i, namespace := range term.Namespaces {
		errs = append(errs, rule.Label(namespace, path.Child("namespaces").Index(i))...)
	}
	errs = append(errs, validateMatchKeys(term.MatchLabelKeys, term.MismatchLabelKeys, term.LabelSelector, path)...)
	if term.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metav1validation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range constraints {
		c, at := &constraints[i], path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		errs = append(
			errs,
			rule.OneOf(
				c.WhenUnsatisfiable,
				[]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway},
				at.Child("whenUnsatisfiable"),
			)...)
		pair := fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable)
		if seen.Has(pair) {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), pair))
		}
		seen.Insert(pair)
		errs = append(errs, validateSpreadDetails(c, at)...)
	}
	return errs
}

func validateSpreadDetails(c *corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if domains := c.MinDomains; domains != nil {
		if *domains <= 0 {
			errs = append(errs, field.Invalid(path.Child("minDomains"), *domains, "must be greater than zero"))
		}
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, field.Invalid(path.Child("minDomains"), *domains,
				fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, c.WhenUnsatisfiable)))
		}
	}
	policies := []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
	if c.NodeAffinityPolicy != nil {
		errs = append(errs, rule.OneOf(*c.NodeAffinityPolicy, policies, path.Child("nodeAffinityPolicy"))...)
	}
	if c.NodeTaintsPolicy != nil {
		errs = append(errs, rule.OneOf(*c.NodeTaintsPolicy, policies, path.Child("nodeTaintsPolicy"))...)
	}
	errs = append(errs, validateMatchKeys(c.MatchLabelKeys, nil, c.LabelSelector, path)...)
	return append(
		errs,
		metav1validation.ValidateLabelSelector(
			c.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{},
			path.Child("labelSelector"),
		)...)
}

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}

// TaintEffect: in a toleration no effect means all of them.
func TaintEffect(effect corev1.TaintEffect, allowEmpty bool, path *field.Path) field.ErrorList {
	if effect == "" && allowEmpty {
		return nil
	}
	if effect == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.OneOf(effect, taintEffects, path)
}
