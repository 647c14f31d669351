package admissionregistration

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

var validationActions = []admissionregistrationv1.ValidationAction{
	admissionregistrationv1.Audit,
	admissionregistrationv1.Deny,
	admissionregistrationv1.Warn,
}

type validatingBinding = admissionregistrationv1.ValidatingAdmissionPolicyBinding

func validatingPolicyBindings() resource.Kind[*validatingBinding] {
	return resource.Kind[*validatingBinding]{
		GroupVersionKind:       admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		Plural:                 "validatingadmissionpolicybindings",
		Categories:             []string{category},
		ClusterScoped:          true,
		New:                    func() *validatingBinding { return &validatingBinding{} },
		NewList:                func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{} },
		Default:                func(binding *validatingBinding) { defaultMatch(binding.Spec.MatchResources) },
		Validate:               validateNewValidatingBinding,
		ValidateUpdate:         func(binding, _ *validatingBinding) field.ErrorList { return validateValidatingBinding(binding) },
		Spec:                   func(binding *validatingBinding) any { return &binding.Spec },
		Generation:             true,
		RequireResourceVersion: true,
		Columns: policyBindingColumns(func(binding *validatingBinding) (string, *admissionregistrationv1.ParamRef) {
			return binding.Spec.PolicyName, binding.Spec.ParamRef
		}),
	}
}

func validateNewValidatingBinding(binding *validatingBinding) field.ErrorList {
	return append(validateValidatingBinding(binding), validateNewName(binding.Name)...)
}

func validateValidatingBinding(binding *validatingBinding) field.ErrorList {
	spec, path := &binding.Spec, field.NewPath("spec")
	errs := validatePolicyName(spec.PolicyName, path.Child("policyName"))
	errs = append(errs, validateParamRef(spec.ParamRef, path.Child("paramRef"))...)
	errs = append(errs, validateMatch(spec.MatchResources, path.Child("matchResources"))...)
	return append(errs, validateActions(spec.ValidationActions, path.Child("validationActions"))...)
}

func validateActions(actions []admissionregistrationv1.ValidationAction, path *field.Path) field.ErrorList {
	if len(actions) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for i, action := range actions {
		errs = append(errs, rule.OneOf(action, validationActions, path.Index(i))...)
		if slices.Contains(actions[:i], action) {
			errs = append(errs, field.Duplicate(path.Index(i), action))
		}
	}
	if slices.Contains(actions, admissionregistrationv1.Deny) && slices.Contains(actions, admissionregistrationv1.Warn) {
		errs = append(
			errs,
			field.Invalid(
				path,
				actions,
				"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
			),
		)
	}
	return errs
}
