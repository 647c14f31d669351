package admissionregistration

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// What both kinds of policies and their bindings share: what they match, and the
// parameters they take.

// mutableOperations are those with an object to change, in the order of messages.
var mutableOperations = []admissionregistrationv1.OperationType{
	admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Update,
}

func defaultMatch(match *admissionregistrationv1.MatchResources) {
	if match == nil {
		return
	}
	defaultMatching(&match.MatchPolicy, &match.NamespaceSelector, &match.ObjectSelector)
	for i := range match.ResourceRules {
		defaultRule(&match.ResourceRules[i].Rule)
	}
	for i := range match.ExcludeResourceRules {
		defaultRule(&match.ExcludeResourceRules[i].Rule)
	}
}

// validateConstraints judges what a policy matches: it must name resources, so that
// the types of its expressions are known.
func validateConstraints(match *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if match == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validateMatch(match, path)
	if len(match.ResourceRules) == 0 {
		errs = append(errs, field.Required(path.Child("resourceRules"), ""))
	}
	return errs
}

func validateMatch(match *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if match == nil {
		return nil
	}
	errs := definedOneOf(match.MatchPolicy, matchPolicies, path.Child("matchPolicy"))
	errs = append(errs, definedSelector(match.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, definedSelector(match.ObjectSelector, path.Child("objectSelector"))...)
	for i := range match.ResourceRules {
		errs = append(errs, validateNamedRule(&match.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range match.ExcludeResourceRules {
		errs = append(errs, validateNamedRule(&match.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func definedSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return validateSelector(selector, false, path)
}

func validateNamedRule(r *admissionregistrationv1.NamedRuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range r.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		errs = append(errs, rule.PathSegment(name, at)...)
		if slices.Contains(r.ResourceNames[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
	}
	return append(errs, validateRule(&r.RuleWithOperations, path)...)
}

// validateMutable refuses operations that have no object to change.
func validateMutable(match *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if match == nil {
		return nil
	}
	for i := range match.ResourceRules {
		for _, operation := range match.ResourceRules[i].Operations {
			errs = append(errs, rule.OneOf(operation, mutableOperations, path.Child("resourceRules", "operations"))...)
		}
	}
	return errs
}

// sameConditionsOf reports that nothing changed which conditions are compiled with.
func sameConditionsOf(kind, oldKind *admissionregistrationv1.ParamKind, conditions, old []admissionregistrationv1.MatchCondition) bool {
	return equality.Semantic.DeepEqual(kind, oldKind) && equality.Semantic.DeepEqual(conditions, old)
}

func validatePolicyName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return rule.Required(name, path)
	}
	return rule.Subdomain(name, path)
}

func validateParamRef(ref *admissionregistrationv1.ParamRef, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	const exclusive = "name and selector are mutually exclusive"
	var errs field.ErrorList
	if ref.Name != "" {
		errs = append(errs, rule.PathSegment(ref.Name, path.Child("name"))...)
	}
	if ref.Selector != nil {
		errs = append(errs, validateSelector(ref.Selector, false, path.Child("selector"))...)
	}
	switch {
	case ref.Name != "" && ref.Selector != nil:
		errs = append(errs, field.Forbidden(path.Child("name"), exclusive), field.Forbidden(path.Child("selector"), exclusive))
	case ref.Name == "" && ref.Selector == nil:
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	action := path.Child("parameterNotFoundAction")
	if ref.ParameterNotFoundAction == nil {
		return append(errs, field.Required(action, ""))
	}
	return append(errs, rule.RequiredOneOf(
		*ref.ParameterNotFoundAction,
		[]admissionregistrationv1.ParameterNotFoundActionType{
			admissionregistrationv1.DenyAction,
			admissionregistrationv1.AllowAction,
		},
		action,
	)...)
}

// policyColumns: expressions are counted, validations or mutations.
func policyColumns[T resource.Object](
	name, description string,
	count func(T) int,
	params func(T) *admissionregistrationv1.ParamKind,
) []resource.Column[T] {
	return []resource.Column[T]{
		column.Name[T](),
		column.Int(name, description, func(policy T) int64 { return int64(count(policy)) }),
		column.Text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy", 0, func(policy T) string {
			if kind := params(policy); kind != nil {
				return kind.APIVersion + "/" + kind.Kind
			}
			return column.Unset
		}),
		column.Age[T](),
	}
}

func policyBindingColumns[T resource.Object](parts func(T) (policy string, params *admissionregistrationv1.ParamRef)) []resource.Column[T] {
	return []resource.Column[T]{
		column.Name[T](),
		column.Text(
			"PolicyName",
			"PolicyName indicates the policy definition which the policy binding binded to",
			0,
			func(binding T) string {
				policy, _ := parts(binding)
				return policy
			},
		),
		column.Text("ParamRef", "ParamRef indicates the param resource which sets the configuration param", 0, func(binding T) string {
			_, params := parts(binding)
			return paramRefCell(params)
		}),
		column.Age[T](),
	}
}

// paramRefCell: without a namespace it is not known here whether the parameter has one.
func paramRefCell(ref *admissionregistrationv1.ParamRef) string {
	switch {
	case ref == nil:
		return column.Unset
	case ref.Name != "" && ref.Namespace != "":
		return ref.Namespace + "/" + ref.Name
	case ref.Name != "":
		return "*/" + ref.Name
	case ref.Selector != nil:
		return ref.Selector.String()
	}
	return column.Unset
}
