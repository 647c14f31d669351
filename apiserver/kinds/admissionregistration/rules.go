package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// What webhooks and policies share: which requests they are asked about.

const everything = "*"

// The supported values, in the order of messages.
var (
	failurePolicies = []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore}
	matchPolicies   = []admissionregistrationv1.MatchPolicyType{admissionregistrationv1.Equivalent, admissionregistrationv1.Exact}
	scopes          = []admissionregistrationv1.ScopeType{
		admissionregistrationv1.AllScopes,
		admissionregistrationv1.ClusterScope,
		admissionregistrationv1.NamespacedScope,
	}
	operations = []admissionregistrationv1.OperationType{
		admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create,
		admissionregistrationv1.Delete, admissionregistrationv1.Update,
	}
	reinvocations = []admissionregistrationv1.ReinvocationPolicyType{
		admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy,
	}
)

func defaultRule(r *admissionregistrationv1.Rule) {
	rule.DefaultPointer(&r.Scope, admissionregistrationv1.AllScopes)
}

// defaultMatching fills how a webhook or policy matches: also by other versions of
// the same resource, in all namespaces, all objects.
func defaultMatching(policy **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector) {
	rule.DefaultPointer(policy, admissionregistrationv1.Equivalent)
	rule.DefaultPointer(namespaces, metav1.LabelSelector{})
	rule.DefaultPointer(objects, metav1.LabelSelector{})
}

// definedOneOf judges a member of a set that defaults have filled.
func definedOneOf[T ~string](value *T, set []T, path *field.Path) field.ErrorList {
	if value == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.OneOf(*value, set, path)
}

func validateSelector(selector *metav1.LabelSelector, badLabels bool, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(
		selector,
		metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: badLabels},
		path,
	)
}

func validateRule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) field.ErrorList {
	errs := validateOperations(r.Operations, path.Child("operations"))
	errs = append(errs, validateGroups(r.APIGroups, path.Child("apiGroups"))...)
	errs = append(errs, validateVersions(r.APIVersions, path.Child("apiVersions"))...)
	errs = append(errs, validateResources(r.Resources, path.Child("resources"))...)
	return append(errs, rule.OptionalOneOf(r.Scope, scopes, path.Child("scope"))...)
}

func validateOperations(list []admissionregistrationv1.OperationType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if len(list) > 1 && slices.Contains(list, admissionregistrationv1.OperationAll) {
		errs = append(errs, field.Invalid(path, list, "if '*' is present, must not specify other operations"))
	}
	for i, operation := range list {
		errs = append(errs, rule.OneOf(operation, operations, path.Index(i))...)
	}
	return errs
}

// validateGroups: the empty group is that of Pods and Services.
func validateGroups(groups []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(groups) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if len(groups) > 1 && slices.Contains(groups, everything) {
		errs = append(errs, field.Invalid(path, groups, "if '*' is present, must not specify other API groups"))
	}
	return errs
}

func validateVersions(versions []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(versions) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if len(versions) > 1 && slices.Contains(versions, everything) {
		errs = append(errs, field.Invalid(path, versions, "if '*' is present, must not specify other API versions"))
	}
	for i, version := range versions {
		errs = append(errs, rule.Required(version, path.Index(i))...)
	}
	return errs
}

// validateResources refuses what another entry of the list covers already: after
// pods/* an entry pods/log would only seem to say something.
func validateResources(resources []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	whole, anywhere := map[string]bool{}, map[string]bool{}
	lastIsPlain := false
	for i, entry := range resources {
		name, sub, isSub := strings.Cut(entry, "/")
		switch {
		case entry == "":
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		case !isSub:
			lastIsPlain = entry != everything
			continue
		}
		if whole[name] {
			errs = append(errs, field.Invalid(path.Index(i), entry, fmt.Sprintf("if '%s/*' is present, must not specify %s", name, entry)))
		}
		if anywhere[sub] {
			errs = append(errs, field.Invalid(path.Index(i), entry, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, entry)))
		}
		whole[name] = whole[name] || sub == everything
		anywhere[sub] = anywhere[sub] || name == everything
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if slices.Contains(resources, everything) && lastIsPlain {
		errs = append(errs, field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}
