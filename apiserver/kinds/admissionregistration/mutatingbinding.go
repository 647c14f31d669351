package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type mutatingBinding = admissionregistrationv1.MutatingAdmissionPolicyBinding

func mutatingPolicyBindings() resource.Kind[*mutatingBinding] {
	return resource.Kind[*mutatingBinding]{
		GroupVersionKind:       admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"),
		Plural:                 "mutatingadmissionpolicybindings",
		Categories:             []string{category},
		ClusterScoped:          true,
		New:                    func() *mutatingBinding { return &mutatingBinding{} },
		NewList:                func() runtime.Object { return &admissionregistrationv1.MutatingAdmissionPolicyBindingList{} },
		Default:                func(binding *mutatingBinding) { defaultMatch(binding.Spec.MatchResources) },
		Validate:               validateNewMutatingBinding,
		ValidateUpdate:         func(binding, _ *mutatingBinding) field.ErrorList { return validateMutatingBinding(binding) },
		Spec:                   func(binding *mutatingBinding) any { return &binding.Spec },
		Generation:             true,
		RequireResourceVersion: true,
		Columns: policyBindingColumns(func(binding *mutatingBinding) (string, *admissionregistrationv1.ParamRef) {
			return binding.Spec.PolicyName, binding.Spec.ParamRef
		}),
	}
}

func validateNewMutatingBinding(binding *mutatingBinding) field.ErrorList {
	return append(validateMutatingBinding(binding), validateNewName(binding.Name)...)
}

func validateMutatingBinding(binding *mutatingBinding) field.ErrorList {
	spec, path := &binding.Spec, field.NewPath("spec")
	errs := validatePolicyName(spec.PolicyName, path.Child("policyName"))
	errs = append(errs, validateParamRef(spec.ParamRef, path.Child("paramRef"))...)
	errs = append(errs, validateMatch(spec.MatchResources, path.Child("matchResources"))...)
	return append(errs, validateMutable(spec.MatchResources, path.Child("matchResources"))...)
}
