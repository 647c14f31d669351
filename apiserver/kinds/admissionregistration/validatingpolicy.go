package admissionregistration

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/client-go/util/jsonpath"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	auditAnnotationsMax = 20
	// auditExpressionBytesMax is less than what a value may have (10 KiB): joined strings
	// are often longer than the expression that joins them.
	auditExpressionBytesMax = 5 << 10
)

// refusalReasons are the reasons that a validation may give, in the order of messages.
var refusalReasons = []metav1.StatusReason{
	metav1.StatusReasonForbidden,
	metav1.StatusReasonInvalid,
	metav1.StatusReasonRequestEntityTooLarge,
}

type validatingPolicy = admissionregistrationv1.ValidatingAdmissionPolicy

func validatingPolicies() resource.Kind[*validatingPolicy] {
	return resource.Kind[*validatingPolicy]{
		GroupVersionKind:       admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
		Plural:                 "validatingadmissionpolicies",
		Categories:             []string{category},
		ClusterScoped:          true,
		New:                    func() *validatingPolicy { return &validatingPolicy{} },
		NewList:                func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyList{} },
		Default:                defaultValidatingPolicy,
		StatusResets:           []string{"metadata", "spec"},
		PrepareStatus:          func(policy, old *validatingPolicy) { metav1.ResetObjectMetaForStatus(policy, old) },
		Validate:               validateValidatingPolicy,
		ValidateUpdate:         validateValidatingPolicyUpdate,
		ValidateStatus:         func(policy, _ *validatingPolicy) field.ErrorList { return validatePolicyStatus(&policy.Status) },
		Spec:                   func(policy *validatingPolicy) any { return &policy.Spec },
		Status:                 func(policy *validatingPolicy) any { return &policy.Status },
		Generation:             true,
		RequireResourceVersion: true,
		Columns: policyColumns("Validations", "Validations indicates the number of validation rules defined in this configuration",
			func(policy *validatingPolicy) int { return len(policy.Spec.Validations) },
			func(policy *validatingPolicy) *admissionregistrationv1.ParamKind { return policy.Spec.ParamKind }),
	}
}

func defaultValidatingPolicy(policy *validatingPolicy) {
	rule.DefaultPointer(&policy.Spec.FailurePolicy, admissionregistrationv1.Fail)
	defaultMatch(policy.Spec.MatchConstraints)
}

func validateValidatingPolicy(policy *validatingPolicy) field.ErrorList {
	return append(validatePolicySpec(policy, nil), validateNewName(policy.Name)...)
}

func validateValidatingPolicyUpdate(policy, old *validatingPolicy) field.ErrorList {
	return validatePolicySpec(policy, old)
}

// validatePolicySpec judges a policy; old is nil for a new one.
func validatePolicySpec(policy, old *validatingPolicy) field.ErrorList {
	spec, path, stored := &policy.Spec, field.NewPath("spec"), storedExpressions(old)
	errs := definedOneOf(spec.FailurePolicy, failurePolicies, path.Child("failurePolicy"))
	if spec.ParamKind != nil {
		errs = append(errs, validateParamKind(spec.ParamKind, path.Child("paramKind"))...)
	}
	errs = append(errs, validateConstraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	if old == nil || !sameConditionsOf(spec.ParamKind, old.Spec.ParamKind, spec.MatchConditions, old.Spec.MatchConditions) {
		errs = append(errs, validateMatchConditions(spec.MatchConditions, spec.ParamKind != nil, stored, path.Child("matchConditions"))...)
	}
	c := compiler{cel: plain(), params: spec.ParamKind != nil, stored: stored}
	if len(spec.Variables) > 0 {
		c.cel = composed()
	}
	for i := range spec.Variables {
		errs = append(errs, c.declare(&spec.Variables[i], path.Child("variables").Index(i))...)
	}
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		const nothing = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(path.Child("validations"), nothing), field.Required(path.Child("auditAnnotations"), nothing))
	}
	for i := range spec.Validations {
		errs = append(errs, c.validation(&spec.Validations[i], path.Child("validations").Index(i))...)
	}
	return append(errs, c.annotations(policy.Name, spec.AuditAnnotations, path.Child("auditAnnotations"))...)
}

func storedExpressions(policy *validatingPolicy) map[string]bool {
	stored := map[string]bool{}
	if policy == nil {
		return stored
	}
	storeConditions(stored, policy.Spec.MatchConditions)
	for _, variable := range policy.Spec.Variables {
		stored[variable.Expression] = true
	}
	for _, v := range policy.Spec.Validations {
		stored[v.Expression], stored[v.MessageExpression] = true, true
	}
	for _, annotation := range policy.Spec.AuditAnnotations {
		stored[strings.TrimSpace(annotation.ValueExpression)] = true
	}
	return stored
}

func (c compiler) validation(v *admissionregistrationv1.Validation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// Expressions are compiled untrimmed, so that columns in messages are those of the source.
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	} else {
		e := expression{text: v.Expression, returns: []*cel.Type{cel.BoolType}}
		errs = append(errs, c.check(e, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, path.Child("expression"))...)
	}
	const blank = "must be non-empty if specified"
	switch at := path.Child("messageExpression"); {
	case v.MessageExpression == "":
	case strings.TrimSpace(v.MessageExpression) == "":
		errs = append(errs, field.Invalid(at, v.MessageExpression, blank))
	default:
		errs = append(
			errs,
			c.check(
				expression{text: v.MessageExpression, returns: []*cel.Type{cel.StringType}},
				plugincel.OptionalVariableDeclarations{},
				at,
			)...)
	}
	switch message, at := strings.TrimSpace(v.Message), path.Child("message"); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(at, v.Message, blank))
	case strings.ContainsAny(message, "\n\r"):
		errs = append(errs, field.Invalid(at, v.Message, "must not contain line breaks"))
	}
	return append(errs, rule.OptionalOneOf(v.Reason, refusalReasons, path.Child("reason"))...)
}

// annotations: the key of an annotation in the audit log is <policy>/<key>.
func (c compiler) annotations(policy string, annotations []admissionregistrationv1.AuditAnnotation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(annotations) > auditAnnotationsMax {
		errs = append(
			errs,
			field.Invalid(path, annotations, fmt.Sprintf("must not have more than %d auditAnnotations", auditAnnotationsMax)),
		)
	}
	keys := map[string]bool{}
	for i, annotation := range annotations {
		at := path.Index(i)
		if policy == "" {
			errs = append(errs, field.Invalid(at.Child("key"), annotation.Key, "requires metadata.name be non-empty"))
		} else {
			errs = append(errs, rule.QualifiedName(policy+"/"+annotation.Key, at.Child("key"))...)
		}
		errs = append(errs, c.annotation(annotation.ValueExpression, at.Child("valueExpression"))...)
		if keys[annotation.Key] {
			errs = append(errs, field.Duplicate(at.Child("key"), annotation.Key))
		}
		keys[annotation.Key] = true
	}
	return errs
}

func (c compiler) annotation(text string, path *field.Path) field.ErrorList {
	switch text = strings.TrimSpace(text); {
	case text == "":
		return field.ErrorList{field.Required(path, "valueExpression is not specified")}
	case len(text) > auditExpressionBytesMax:
		return field.ErrorList{field.Required(path, fmt.Sprintf("must not exceed %d bytes in length", auditExpressionBytesMax))}
	}
	return c.check(
		expression{text: text, returns: []*cel.Type{cel.StringType, cel.NullType}},
		plugincel.OptionalVariableDeclarations{HasAuthorizer: true},
		path,
	)
}

func validatePolicyStatus(status *admissionregistrationv1.ValidatingAdmissionPolicyStatus) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	if status.TypeChecking != nil {
		for i, warning := range status.TypeChecking.ExpressionWarnings {
			at := path.Child("typeChecking", "expressionWarnings").Index(i)
			errs = append(errs, rule.Required(warning.Warning, at.Child("warning"))...)
			errs = append(errs, validateFieldRef(strings.TrimSpace(warning.FieldRef), at.Child("fieldRef"))...)
		}
	}
	return append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
}

func validateFieldRef(ref string, path *field.Path) field.ErrorList {
	if ref == "" {
		return rule.Required(ref, path)
	}
	if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
		return field.ErrorList{field.Invalid(path, ref, fmt.Sprintf("invalid JSONPath: %v", err))}
	}
	return nil
}
