package profile

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// completeSpread fills in upstream's defaults.
func completeSpread(in *configv1.PodTopologySpreadArgs, path *field.Path) error {
	kind := path.Child("defaultingType")
	switch in.DefaultingType {
	case "":
		in.DefaultingType = configv1.SystemDefaulting
	case configv1.SystemDefaulting, configv1.ListDefaulting:
	default:
		return field.NotSupported(kind, in.DefaultingType,
			[]configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting})
	}
	if in.DefaultingType == configv1.SystemDefaulting && len(in.DefaultConstraints) > 0 {
		return field.Invalid(kind, in.DefaultingType, "must be List if there are defaultConstraints")
	}
	type pair struct {
		key    string
		action corev1.UnsatisfiableConstraintAction
	}
	seen := map[pair]bool{}
	for i := range in.DefaultConstraints {
		c, path := &in.DefaultConstraints[i], path.Child("defaultConstraints").Index(i)
		if err := checkConstraint(c, path); err != nil {
			return err
		}
		p := pair{c.TopologyKey, c.WhenUnsatisfiable}
		if seen[p] {
			return field.Duplicate(path, c.TopologyKey+", "+string(c.WhenUnsatisfiable))
		}
		seen[p] = true
	}
	return nil
}

// checkConstraint refuses what upstream does, and what would mean nothing in a default.
func checkConstraint(c *corev1.TopologySpreadConstraint, path *field.Path) error {
	if c.MaxSkew <= 0 {
		return field.Invalid(path.Child("maxSkew"), c.MaxSkew, "must be 1 or more")
	}
	if c.TopologyKey == "" {
		return field.Required(path.Child("topologyKey"), "")
	}
	if errs := metav1validation.ValidateLabelName(c.TopologyKey, path.Child("topologyKey")); len(errs) > 0 {
		return errs[0]
	}
	if c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway {
		return field.NotSupported(path.Child("whenUnsatisfiable"), c.WhenUnsatisfiable,
			[]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway})
	}
	switch {
	case c.LabelSelector != nil:
		return field.Forbidden(path.Child("labelSelector"), "a default is about the pods of the same services and owner")
	case len(c.MatchLabelKeys) > 0:
		return field.Forbidden(path.Child("matchLabelKeys"), "a default is about the pods of the same services and owner")
	case c.MinDomains != nil && *c.MinDomains <= 0:
		return field.Invalid(path.Child("minDomains"), *c.MinDomains, "must be 1 or more")
	case c.MinDomains != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule:
		return field.Invalid(path.Child("minDomains"), *c.MinDomains, "needs whenUnsatisfiable: DoNotSchedule")
	}
	if err := checkPolicy(c.NodeAffinityPolicy, path.Child("nodeAffinityPolicy")); err != nil {
		return err
	}
	return checkPolicy(c.NodeTaintsPolicy, path.Child("nodeTaintsPolicy"))
}

func checkPolicy(policy *corev1.NodeInclusionPolicy, path *field.Path) error {
	if policy == nil || *policy == corev1.NodeInclusionPolicyHonor || *policy == corev1.NodeInclusionPolicyIgnore {
		return nil
	}
	return field.NotSupported(path, *policy, []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore})
}
