package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// What both kinds of bindings share: whom they name, and which role.

func defaultBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	rule.Default(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			rule.Default(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func validateRoleRef(role *rbacv1.RoleRef, kinds []string) field.ErrorList {
	path := field.NewPath("roleRef")
	errs := rule.OneOf(role.APIGroup, []string{rbacv1.GroupName}, path.Child("apiGroup"))
	if !slices.Contains(kinds, role.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), role.Kind, kinds))
	}
	if role.Name == "" {
		return append(errs, field.Required(path.Child("name"), ""))
	}
	return append(errs, rule.PathSegment(role.Name, path.Child("name"))...)
}

func validateSubjects(subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(subject *rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	errs := rule.Required(subject.Name, path.Child("name"))
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return append(errs, validateServiceAccount(subject, namespaced, path)...)
	case rbacv1.UserKind, rbacv1.GroupKind:
		return append(errs, rule.OneOf(subject.APIGroup, []string{rbacv1.GroupName}, path.Child("apiGroup"))...)
	}
	return append(errs, field.NotSupported(path.Child("kind"), subject.Kind,
		[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
}

// validateServiceAccount: without a namespace the account is of the binding's, which
// a cluster's binding does not have.
func validateServiceAccount(subject *rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if subject.Name != "" {
		errs = append(errs, rule.Invalid(subject.Name, validation.ValidateServiceAccountName(subject.Name, false), path.Child("name"))...)
	}
	if subject.APIGroup != "" {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{""}))
	}
	if !namespaced && subject.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	return errs
}

// bindingColumns are the columns of a kind of bindings; parts returns what it binds.
func bindingColumns[T resource.Object](kind, roleRef string, parts func(T) (*rbacv1.RoleRef, []rbacv1.Subject)) []resource.Column[T] {
	subjects := func(kind string) func(T) string {
		return func(binding T) string {
			_, subjects := parts(binding)
			return subjectNames(subjects, kind)
		}
	}
	return []resource.Column[T]{
		column.Name[T](),
		column.Text("Role", roleRef, 0, func(binding T) string {
			role, _ := parts(binding)
			return role.Kind + "/" + role.Name
		}),
		column.Age[T](),
		column.Text("Users", "Users in the "+kind, 1, subjects(rbacv1.UserKind)),
		column.Text("Groups", "Groups in the "+kind, 1, subjects(rbacv1.GroupKind)),
		column.Text("ServiceAccounts", "ServiceAccounts in the "+kind, 1, subjects(rbacv1.ServiceAccountKind)),
	}
}

func subjectNames(subjects []rbacv1.Subject, kind string) string {
	var names []string
	for _, subject := range subjects {
		switch {
		case subject.Kind != kind:
		case kind == rbacv1.ServiceAccountKind:
			names = append(names, subject.Namespace+"/"+subject.Name)
		default:
			names = append(names, subject.Name)
		}
	}
	return strings.Join(names, ", ")
}
