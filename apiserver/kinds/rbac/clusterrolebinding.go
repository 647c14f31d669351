package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func clusterRoleBindings() resource.Kind[*rbacv1.ClusterRoleBinding] {
	return resource.Kind[*rbacv1.ClusterRoleBinding]{
		GroupVersionKind:    rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		Plural:              "clusterrolebindings",
		ClusterScoped:       true,
		New:                 func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
		NewList:             func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
		ValidateName:        name,
		Default:             func(binding *rbacv1.ClusterRoleBinding) { defaultBinding(&binding.RoleRef, binding.Subjects) },
		Validate:            validateClusterRoleBinding,
		ValidateUpdate:      validateClusterRoleBindingUpdate,
		AllowCreateOnUpdate: true,
		Columns: bindingColumns("clusterRoleBinding", rbacv1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"],
			func(binding *rbacv1.ClusterRoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) {
				return &binding.RoleRef, binding.Subjects
			}),
	}
}

func validateClusterRoleBinding(binding *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateRoleRef(&binding.RoleRef, []string{"ClusterRole"})
	return append(errs, validateSubjects(binding.Subjects, false)...)
}

func validateClusterRoleBindingUpdate(binding, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateClusterRoleBinding(binding)
	return append(errs, validation.ValidateImmutableField(binding.RoleRef, old.RoleRef, field.NewPath("roleRef"))...)
}
