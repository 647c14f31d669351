package flowcontrol

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// everything matches all in a list.
const everything = "*"

// Supported values in the order of messages.
var (
	verbs        = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
	subjectKinds = []flowcontrolv1.SubjectKind{
		flowcontrolv1.SubjectKindGroup,
		flowcontrolv1.SubjectKindServiceAccount,
		flowcontrolv1.SubjectKindUser,
	}
)

func validatePolicyRules(r *flowcontrolv1.PolicyRulesWithSubjects, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		errs = append(errs, validateSubject(&r.Subjects[i], path.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules)+len(r.NonResourceRules) == 0 {
		errs = append(errs, field.Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range r.ResourceRules {
		errs = append(errs, validateResourceRule(&r.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range r.NonResourceRules {
		errs = append(errs, validatePathRule(&r.NonResourceRules[i], path.Child("nonResourceRules").Index(i))...)
	}
	return errs
}

func validateSubject(subject *flowcontrolv1.Subject, path *field.Path) field.ErrorList {
	if !slices.Contains(subjectKinds, subject.Kind) {
		return field.ErrorList{field.NotSupported(path.Child("kind"), subject.Kind, subjectKinds)}
	}
	var errs field.ErrorList
	for _, part := range []struct {
		kind  flowcontrolv1.SubjectKind
		name  string
		set   bool
		judge func(*field.Path) field.ErrorList
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", subject.ServiceAccount != nil, func(at *field.Path) field.ErrorList { return validateAccount(subject.ServiceAccount, at) }},
		{flowcontrolv1.SubjectKindUser, "user", subject.User != nil, func(at *field.Path) field.ErrorList { return rule.Required(subject.User.Name, at.Child("name")) }},
		{flowcontrolv1.SubjectKindGroup, "group", subject.Group != nil, func(at *field.Path) field.ErrorList { return rule.Required(subject.Group.Name, at.Child("name")) }},
	} {
		at, wanted := path.Child(part.name), part.kind == subject.Kind
		switch {
		case wanted && part.set:
			errs = append(errs, part.judge(at)...)
		case wanted:
			errs = append(errs, field.Required(at, part.name+" is required when subject kind is '"+string(part.kind)+"'"))
		case part.set:
			errs = append(errs, field.Forbidden(at, part.name+" is forbidden when subject kind is not '"+string(part.kind)+"'"))
		}
	}
	return errs
}

func validateAccount(account *flowcontrolv1.ServiceAccountSubject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch account.Name {
	case "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	case everything:
	default:
		errs = append(errs, rule.Invalid(account.Name, validation.ValidateServiceAccountName(account.Name, false), path.Child("name"))...)
	}
	if account.Namespace == "" {
		return append(errs, field.Required(path.Child("namespace"), "must specify namespace for service account"))
	}
	return append(errs, rule.Label(account.Namespace, path.Child("namespace"))...)
}

func validateVerbs(list []string, path *field.Path) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, "verbs must contain at least one value")}
	case slices.Contains(list, everything):
		return alone(list, "verbs", path)
	case slices.ContainsFunc(list, func(verb string) bool { return !slices.Contains(verbs, verb) }):
		return field.ErrorList{field.NotSupported(path, list, verbs)}
	}
	return nil
}

// alone refuses what a star in the same list covers already.
func alone(list []string, what string, path *field.Path) field.ErrorList {
	if len(list) == 1 || !slices.Contains(list, everything) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, list, "if '*' is present, must not specify other "+what)}
}

func validateResourceRule(r *flowcontrolv1.ResourcePolicyRule, path *field.Path) field.ErrorList {
	errs := validateVerbs(r.Verbs, path.Child("verbs"))
	if len(r.APIGroups) == 0 {
		errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	errs = append(errs, alone(r.APIGroups, "api groups", path.Child("apiGroups"))...)
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	errs = append(errs, alone(r.Resources, "resources", path.Child("resources"))...)
	return append(errs, validateNamespaces(r.Namespaces, r.ClusterScope, path.Child("namespaces"))...)
}

func validateNamespaces(list []string, cluster bool, path *field.Path) field.ErrorList {
	switch {
	case len(list) == 0 && !cluster:
		return field.ErrorList{field.Required(path, "resource rules that are not cluster scoped must supply at least one namespace")}
	case slices.Contains(list, everything):
		return alone(list, "namespaces", path)
	}
	var errs field.ErrorList
	for i, namespace := range list {
		for _, msg := range validation.ValidateNamespaceName(namespace, false) {
			errs = append(errs, field.Invalid(path.Index(i), namespace, "each member of this list must be '*' or a DNS-1123 label; "+msg))
		}
	}
	return errs
}

func validatePathRule(r *flowcontrolv1.NonResourcePolicyRule, path *field.Path) field.ErrorList {
	errs, at := validateVerbs(r.Verbs, path.Child("verbs")), path.Child("nonResourceURLs")
	switch {
	case len(r.NonResourceURLs) == 0:
		return append(errs, field.Required(at, "nonResourceURLs must contain at least one value"))
	case slices.Contains(r.NonResourceURLs, everything):
		return append(errs, alone(r.NonResourceURLs, "non-resource URLs", at)...)
	}
	for i, url := range r.NonResourceURLs {
		if problem := urlProblem(url); problem != "" {
			errs = append(errs, field.Invalid(at.Index(i), url, problem))
		}
	}
	return errs
}

// urlProblem says what a path may not be; a star stands for the rest of it, slashes too.
func urlProblem(url string) string {
	stars := strings.Count(url, everything)
	switch {
	case url == "":
		return "must not be empty"
	case !strings.HasPrefix(url, "/"):
		return "must start with slash"
	case strings.Contains(url, " "):
		return "must not contain white-space"
	case strings.Contains(url, "//"):
		return "must not contain double slash"
	case stars > 1 || stars == 1 && !strings.HasSuffix(url, "/*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}
