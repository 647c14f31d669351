package admissionregistration

import (
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type mutatingPolicy = admissionregistrationv1.MutatingAdmissionPolicy

func mutatingPolicies() resource.Kind[*mutatingPolicy] {
	return resource.Kind[*mutatingPolicy]{
		GroupVersionKind:       admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"),
		Plural:                 "mutatingadmissionpolicies",
		Categories:             []string{category},
		ClusterScoped:          true,
		New:                    func() *mutatingPolicy { return &mutatingPolicy{} },
		NewList:                func() runtime.Object { return &admissionregistrationv1.MutatingAdmissionPolicyList{} },
		Default:                defaultMutatingPolicy,
		Validate:               validateNewMutatingPolicy,
		ValidateUpdate:         validateMutatingPolicy,
		Spec:                   func(policy *mutatingPolicy) any { return &policy.Spec },
		Generation:             true,
		RequireResourceVersion: true,
		Columns: policyColumns("Mutations", "Mutation indicates the number of mutations rules defined in this configuration",
			func(policy *mutatingPolicy) int { return len(policy.Spec.Mutations) },
			func(policy *mutatingPolicy) *admissionregistrationv1.ParamKind { return policy.Spec.ParamKind }),
	}
}

func defaultMutatingPolicy(policy *mutatingPolicy) {
	rule.DefaultPointer(&policy.Spec.FailurePolicy, admissionregistrationv1.Fail)
	defaultMatch(policy.Spec.MatchConstraints)
}

func validateNewMutatingPolicy(policy *mutatingPolicy) field.ErrorList {
	return append(validateMutatingPolicy(policy, nil), validateNewName(policy.Name)...)
}

// validateMutatingPolicy judges a policy; old is nil for a new one.
func validateMutatingPolicy(policy, old *mutatingPolicy) field.ErrorList {
	spec, path, stored := &policy.Spec, field.NewPath("spec"), storedMutations(old)
	errs := definedOneOf(spec.FailurePolicy, failurePolicies, path.Child("failurePolicy"))
	if spec.ParamKind != nil {
		errs = append(errs, validateParamKind(spec.ParamKind, path.Child("paramKind"))...)
	}
	errs = append(errs, validateConstraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	errs = append(errs, validateMutable(spec.MatchConstraints, path.Child("matchConstraints"))...)
	if old == nil || !sameConditionsOf(spec.ParamKind, old.Spec.ParamKind, spec.MatchConditions, old.Spec.MatchConditions) {
		errs = append(errs, validateMatchConditions(spec.MatchConditions, spec.ParamKind != nil, stored, path.Child("matchConditions"))...)
	}
	c := compiler{cel: composed(), params: spec.ParamKind != nil, stored: stored}
	for i := range spec.Variables {
		errs = append(errs, c.declare(&spec.Variables[i], path.Child("variables").Index(i))...)
	}
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(path.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, c.mutation(&spec.Mutations[i], path.Child("mutations").Index(i))...)
	}
	return append(errs, rule.RequiredOneOf(spec.ReinvocationPolicy, reinvocations, path.Child("reinvocationPolicy"))...)
}

func storedMutations(policy *mutatingPolicy) map[string]bool {
	stored := map[string]bool{}
	if policy == nil {
		return stored
	}
	storeConditions(stored, policy.Spec.MatchConditions)
	for _, variable := range policy.Spec.Variables {
		stored[variable.Expression] = true
	}
	for _, mutation := range policy.Spec.Mutations {
		if mutation.ApplyConfiguration != nil {
			stored[strings.TrimSpace(mutation.ApplyConfiguration.Expression)] = true
		}
		if mutation.JSONPatch != nil {
			stored[strings.TrimSpace(mutation.JSONPatch.Expression)] = true
		}
	}
	return stored
}

func (c compiler) mutation(m *admissionregistrationv1.Mutation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	patch, apply := path.Child("jsonPatch"), path.Child("applyConfiguration")
	switch m.PatchType {
	case "":
		return field.ErrorList{field.Required(path.Child("patchType"), "")}
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			errs = append(errs, field.Required(patch, "must be specified when patchType is JSONPatch"))
		} else {
			errs = append(errs, c.patch(m.JSONPatch.Expression, cel.ListType(cel.ObjectType("JSONPatch")), patch.Child("expression"))...)
		}
		if m.ApplyConfiguration != nil {
			errs = append(errs, field.Invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
		}
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			errs = append(errs, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		} else {
			errs = append(errs, c.patch(m.ApplyConfiguration.Expression, cel.ObjectType("Object"), apply.Child("expression"))...)
		}
		if m.JSONPatch != nil {
			errs = append(errs, field.Invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
		}
	default:
		return field.ErrorList{field.NotSupported(
			path.Child("patchType"),
			m.PatchType,
			[]admissionregistrationv1.PatchType{
				admissionregistrationv1.PatchTypeApplyConfiguration,
				admissionregistrationv1.PatchTypeJSONPatch,
			},
		)}
	}
	return errs
}

func (c compiler) patch(text string, returns *cel.Type, path *field.Path) field.ErrorList {
	text = strings.TrimSpace(text)
	if text == "" {
		return rule.Required(text, path)
	}
	return c.check(
		expression{text: text, returns: []*cel.Type{returns}},
		plugincel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true},
		path,
	)
}
