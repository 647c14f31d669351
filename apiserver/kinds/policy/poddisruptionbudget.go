package policy

import (
	policyv1 "k8s.io/api/policy/v1"
	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

var unhealthyPolicies = []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}

func podDisruptionBudgets() resource.Kind[*policyv1.PodDisruptionBudget] {
	return resource.Kind[*policyv1.PodDisruptionBudget]{
		GroupVersionKind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		Plural:           "poddisruptionbudgets",
		ValidateName:     pathvalidation.ValidatePathSegmentName, // upstream asks for no more
		ShortNames:       []string{"pdb"},
		New:              func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
		NewList:          func() runtime.Object { return &policyv1.PodDisruptionBudgetList{} },
		Validate:         func(pdb *policyv1.PodDisruptionBudget) field.ErrorList { return validateBudget(pdb, nil) },
		ValidateUpdate:   validateBudget,
		ValidateStatus:   validateBudgetStatus,
		Spec:             func(pdb *policyv1.PodDisruptionBudget) any { return &pdb.Spec },
		Status:           func(pdb *policyv1.PodDisruptionBudget) any { return &pdb.Status },
		Generation:       true,
		// Two who change a budget at once must not both believe to have its last disruption.
		RequireResourceVersion: true,
		Columns: []resource.Column[*policyv1.PodDisruptionBudget]{
			column.Name[*policyv1.PodDisruptionBudget](),
			column.Text(
				"Min Available",
				"The minimum number of pods that must be available.",
				0,
				func(pdb *policyv1.PodDisruptionBudget) string {
					return amountCell(pdb.Spec.MinAvailable)
				},
			),
			column.Text(
				"Max Unavailable",
				"The maximum number of pods that may be unavailable.",
				0,
				func(pdb *policyv1.PodDisruptionBudget) string {
					return amountCell(pdb.Spec.MaxUnavailable)
				},
			),
			column.Int(
				"Allowed Disruptions",
				"Calculated number of pods that may be disrupted at this time.",
				func(pdb *policyv1.PodDisruptionBudget) int64 {
					return int64(pdb.Status.DisruptionsAllowed)
				},
			),
			column.Age[*policyv1.PodDisruptionBudget](),
		},
	}
}

func amountCell(amount *intstr.IntOrString) string {
	if amount == nil {
		return "N/A"
	}
	return amount.String()
}

// validateBudget judges a budget; a label value in its selector that is wrong in old
// too may stay. old is nil for a new one.
func validateBudget(pdb, old *policyv1.PodDisruptionBudget) field.ErrorList {
	var errs field.ErrorList
	spec, path := &pdb.Spec, field.NewPath("spec")
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(path, *spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	for _, amount := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"minAvailable", spec.MinAvailable}, {"maxUnavailable", spec.MaxUnavailable}} {
		if amount.value != nil {
			errs = append(errs, workload.ValidateIntOrPercent(*amount.value, path.Child(amount.name))...)
			errs = append(errs, workload.ValidatePercentMax(*amount.value, path.Child(amount.name))...)
		}
	}
	options := metav1validation.LabelSelectorValidationOptions{
		AllowInvalidLabelValueInSelector: old != nil && metav1validation.LabelSelectorHasInvalidLabelValue(old.Spec.Selector),
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, options, path.Child("selector"))...)
	if unhealthy := spec.UnhealthyPodEvictionPolicy; unhealthy != nil {
		errs = append(errs, rule.OneOf(*unhealthy, unhealthyPolicies, path.Child("unhealthyPodEvictionPolicy"))...)
	}
	return errs
}

func validateBudgetStatus(pdb, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	status, path := &pdb.Status, field.NewPath("status")
	errs := metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))
	rule.Nonnegative(&errs, status.DisruptionsAllowed, path.Child("disruptionsAllowed"))
	rule.Nonnegative(&errs, status.CurrentHealthy, path.Child("currentHealthy"))
	rule.Nonnegative(&errs, status.DesiredHealthy, path.Child("desiredHealthy"))
	rule.Nonnegative(&errs, status.ExpectedPods, path.Child("expectedPods"))
	return errs
}
