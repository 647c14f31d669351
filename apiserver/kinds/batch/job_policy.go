package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Limits of the rules by which a job ends early.
const (
	failureRulesMax      = 20
	exitCodesMax         = 255
	conditionPatternsMax = 20
	successRulesMax      = 20
	succeededIndexesMax  = 64 * 1024 // bytes
)

var (
	failureActions = []batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
	}
	exitCodeOperators = []batchv1.PodFailurePolicyOnExitCodesOperator{
		batchv1.PodFailurePolicyOnExitCodesOpIn,
		batchv1.PodFailurePolicyOnExitCodesOpNotIn,
	}
	conditionStatuses = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
)

func validateFailurePolicy(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if spec.PodFailurePolicy == nil {
		return nil
	}
	var errs field.ErrorList
	rules := spec.PodFailurePolicy.Rules
	if len(rules) > failureRulesMax {
		errs = append(errs, field.TooMany(path.Child("rules"), len(rules), failureRulesMax))
	}
	for i := range rules {
		errs = append(errs, validateFailureRule(spec, &rules[i], path.Child("rules").Index(i))...)
	}
	return errs
}

func validateFailureRule(spec *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, path *field.Path) field.ErrorList {
	errs := requiredOf(r.Action, failureActions, path.Child("action"))
	if r.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Invalid(path.Child("action"), r.Action, "requires the backoffLimitPerIndex to be set"))
	}
	if r.OnExitCodes != nil {
		errs = append(errs, validateExitCodes(spec, r.OnExitCodes, path.Child("onExitCodes"))...)
	}
	if len(r.OnPodConditions) > conditionPatternsMax {
		errs = append(errs, field.TooMany(path.Child("onPodConditions"), len(r.OnPodConditions), conditionPatternsMax))
	}
	for i, pattern := range r.OnPodConditions {
		at := path.Child("onPodConditions").Index(i)
		errs = append(errs, rule.QualifiedName(string(pattern.Type), at.Child("type"))...)
		errs = append(errs, requiredOf(pattern.Status, conditionStatuses, at.Child("status"))...)
	}
	switch codes, conditions := r.OnExitCodes != nil, len(r.OnPodConditions) > 0; {
	case codes && conditions:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case !codes && !conditions:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

// requiredOf is rule.RequiredOneOf with the choice in the message.
func requiredOf[T ~string](value T, set []T, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("valid values: %q", set))}
	}
	return rule.OneOf(value, set, path)
}

func validateExitCodes(spec *batchv1.JobSpec, codes *batchv1.PodFailurePolicyOnExitCodesRequirement, path *field.Path) field.ErrorList {
	errs := requiredOf(codes.Operator, exitCodeOperators, path.Child("operator"))
	if name := codes.ContainerName; name != nil && !hasContainer(&spec.Template.Spec, *name) {
		errs = append(
			errs,
			field.Invalid(path.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"),
		)
	}
	values := path.Child("values")
	switch n := len(codes.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(values, codes.Values, "at least one value is required"))
	case n > exitCodesMax:
		errs = append(errs, field.TooMany(values, n, exitCodesMax))
	}
	seen := map[int32]bool{}
	for i, code := range codes.Values {
		if code == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(values.Index(i), code, "must not be 0 for the In operator"))
		}
		if seen[code] {
			errs = append(errs, field.Duplicate(values.Index(i), code))
		}
		seen[code] = true
	}
	if !slices.IsSorted(codes.Values) {
		errs = append(errs, field.Invalid(values, codes.Values, "must be ordered"))
	}
	return errs
}

func hasContainer(spec *corev1.PodSpec, name string) bool {
	named := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(spec.Containers, named) || slices.ContainsFunc(spec.InitContainers, named)
}

func validateSuccessPolicy(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if spec.SuccessPolicy == nil {
		return nil
	}
	if !indexed(spec) {
		return field.ErrorList{field.Invalid(path, *spec.SuccessPolicy, "requires indexed completion mode")}
	}
	var errs field.ErrorList
	rules, at := spec.SuccessPolicy.Rules, path.Child("rules")
	switch n := len(rules); {
	case n == 0:
		errs = append(errs, field.Required(at, "at least one rules must be specified when the successPolicy is specified"))
	case n > successRulesMax:
		errs = append(errs, field.TooMany(at, n, successRulesMax))
	}
	for i := range rules {
		errs = append(errs, validateSuccessRule(ptr.Deref(spec.Completions, 0), &rules[i], at.Index(i))...)
	}
	return errs
}

func validateSuccessRule(completions int32, r *batchv1.SuccessPolicyRule, path *field.Path) field.ErrorList {
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		return field.ErrorList{field.Required(path, "at least one of succeededCount or succeededIndexes must be specified")}
	}
	var errs field.ErrorList
	var named int32
	if indexes := r.SucceededIndexes; indexes != nil {
		at := path.Child("succeededIndexes")
		if len(*indexes) > succeededIndexesMax {
			errs = append(errs, field.TooLong(at, "", succeededIndexesMax))
		}
		var err error
		if named, err = countIndexes(*indexes, completions); err != nil {
			errs = append(errs, field.Invalid(at, *indexes, fmt.Sprintf("error parsing succeededIndexes: %s", err)))
		}
	}
	if count := r.SucceededCount; count != nil {
		at := path.Child("succeededCount")
		rule.Nonnegative(&errs, *count, at)
		if *count > completions {
			errs = append(
				errs,
				field.Invalid(
					at,
					*count,
					fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions),
				),
			)
		}
		if r.SucceededIndexes != nil && *count > named {
			errs = append(
				errs,
				field.Invalid(
					at,
					*count,
					fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", named),
				),
			)
		}
	}
	return errs
}
