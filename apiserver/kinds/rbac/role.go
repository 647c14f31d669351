package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func roles() resource.Kind[*rbacv1.Role] {
	return resource.Kind[*rbacv1.Role]{
		GroupVersionKind:    rbacv1.SchemeGroupVersion.WithKind("Role"),
		Plural:              "roles",
		New:                 func() *rbacv1.Role { return &rbacv1.Role{} },
		NewList:             func() runtime.Object { return &rbacv1.RoleList{} },
		ValidateName:        name,
		Validate:            validateRole,
		ValidateUpdate:      func(role, _ *rbacv1.Role) field.ErrorList { return validateRole(role) },
		AllowCreateOnUpdate: true,
		Columns:             []resource.Column[*rbacv1.Role]{column.Name[*rbacv1.Role](), column.Created[*rbacv1.Role]()},
	}
}

func validateRole(role *rbacv1.Role) field.ErrorList {
	return validateRules(role.Rules, true, field.NewPath("rules"))
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, validateRule(&rules[i], namespaced, path.Index(i))...)
	}
	return errs
}

// validateRule: a rule speaks either of resources or of paths, and only in a
// cluster role of paths, which lie in no namespace.
func validateRule(rule *rbacv1.PolicyRule, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Verbs) == 0 {
		errs = append(errs, field.Required(path.Child("verbs"), ""))
	}
	if len(rule.NonResourceURLs) > 0 {
		at := path.Child("nonResourceURLs")
		if namespaced {
			errs = append(errs, field.Invalid(at, rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		}
		if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
			errs = append(
				errs,
				field.Invalid(at, rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"),
			)
		}
		return errs
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}
