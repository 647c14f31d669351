package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func clusterRoles() resource.Kind[*rbacv1.ClusterRole] {
	return resource.Kind[*rbacv1.ClusterRole]{
		GroupVersionKind:    rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		Plural:              "clusterroles",
		ClusterScoped:       true,
		New:                 func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} },
		NewList:             func() runtime.Object { return &rbacv1.ClusterRoleList{} },
		ValidateName:        name,
		Validate:            func(role *rbacv1.ClusterRole) field.ErrorList { return validateClusterRole(role, false) },
		ValidateUpdate:      validateClusterRoleUpdate,
		AllowCreateOnUpdate: true,
		Columns: []resource.Column[*rbacv1.ClusterRole]{
			column.Name[*rbacv1.ClusterRole](),
			column.Created[*rbacv1.ClusterRole](),
		},
	}
}

// validateClusterRoleUpdate forgives a bad value in a selector where the stored role
// has one already: releases before the rule have let it in.
func validateClusterRoleUpdate(role, old *rbacv1.ClusterRole) field.ErrorList {
	return validateClusterRole(role, len(validateAggregation(old.AggregationRule, false)) > 0)
}

func validateClusterRole(role *rbacv1.ClusterRole, badLabels bool) field.ErrorList {
	errs := validateRules(role.Rules, false, field.NewPath("rules"))
	return append(errs, validateAggregation(role.AggregationRule, badLabels)...)
}

func validateAggregation(aggregation *rbacv1.AggregationRule, badLabels bool) field.ErrorList {
	if aggregation == nil {
		return nil
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(aggregation.ClusterRoleSelectors) == 0 {
		return field.ErrorList{field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")}
	}
	var errs field.ErrorList
	options := metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: badLabels}
	for i := range aggregation.ClusterRoleSelectors {
		selector, at := &aggregation.ClusterRoleSelectors[i], path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelSelector(selector, options, at)...)
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			errs = append(errs, field.Invalid(at, nil, "invalid label selector."))
		}
	}
	return errs
}
