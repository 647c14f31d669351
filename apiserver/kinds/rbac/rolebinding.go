package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func roleBindings() resource.Kind[*rbacv1.RoleBinding] {
	return resource.Kind[*rbacv1.RoleBinding]{
		GroupVersionKind:    rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		Plural:              "rolebindings",
		New:                 func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
		NewList:             func() runtime.Object { return &rbacv1.RoleBindingList{} },
		ValidateName:        name,
		Default:             func(binding *rbacv1.RoleBinding) { defaultBinding(&binding.RoleRef, binding.Subjects) },
		Validate:            validateRoleBinding,
		ValidateUpdate:      validateRoleBindingUpdate,
		AllowCreateOnUpdate: true,
		Columns: bindingColumns("roleBinding", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"],
			func(binding *rbacv1.RoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) {
				return &binding.RoleRef, binding.Subjects
			}),
	}
}

func validateRoleBinding(binding *rbacv1.RoleBinding) field.ErrorList {
	errs := validateRoleRef(&binding.RoleRef, []string{"Role", "ClusterRole"})
	return append(errs, validateSubjects(binding.Subjects, true)...)
}

// validateRoleBindingUpdate: who may change a binding could otherwise give everybody
// in it a role that he may not grant.
func validateRoleBindingUpdate(binding, old *rbacv1.RoleBinding) field.ErrorList {
	errs := validateRoleBinding(binding)
	return append(errs, validation.ValidateImmutableField(binding.RoleRef, old.RoleRef, field.NewPath("roleRef"))...)
}
