package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Scopes of a quota, and which resources can be counted in them.
var (
	podComputeResources = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU,
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
	podResources   = append([]corev1.ResourceName{corev1.ResourcePods}, podComputeResources...)
	claimResources = []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}
	quotaScopes    = map[corev1.ResourceQuotaScope][]corev1.ResourceName{
		corev1.ResourceQuotaScopeTerminating:               podResources,
		corev1.ResourceQuotaScopeNotTerminating:            podResources,
		corev1.ResourceQuotaScopeBestEffort:                {corev1.ResourcePods},
		corev1.ResourceQuotaScopeNotBestEffort:             podResources,
		corev1.ResourceQuotaScopePriorityClass:             podResources,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: podResources,
		corev1.ResourceQuotaScopeVolumeAttributesClass:     claimResources,
	}
	oppositeScopes = [][]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	}
)

func resourceQuotas() resource.Kind[*corev1.ResourceQuota] {
	return resource.Kind[*corev1.ResourceQuota]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ResourceQuota"),
		Plural:           "resourcequotas",
		ShortNames:       []string{"quota"},
		New:              func() *corev1.ResourceQuota { return &corev1.ResourceQuota{} },
		NewList:          func() runtime.Object { return &corev1.ResourceQuotaList{} },
		Default:          defaultResourceQuota,
		Validate: func(quota *corev1.ResourceQuota) field.ErrorList {
			return validateQuotaSpec(&quota.Spec, field.NewPath("spec"))
		},
		ValidateUpdate: validateQuotaUpdate,
		ValidateStatus: validateQuotaStatus,
		Spec:           func(quota *corev1.ResourceQuota) any { return &quota.Spec },
		Status:         func(quota *corev1.ResourceQuota) any { return &quota.Status },
		ReturnDeleted:  true,
		Columns: []resource.Column[*corev1.ResourceQuota]{
			column.Name[*corev1.ResourceQuota](),
			column.Text(
				"Request",
				"Request represents a minimum amount of cpu/memory that a container may consume.",
				0,
				func(quota *corev1.ResourceQuota) string {
					return quotaCell(quota, false)
				},
			),
			column.Text(
				"Limit",
				"Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
				0,
				func(quota *corev1.ResourceQuota) string {
					return quotaCell(quota, true)
				},
			),
			column.Age[*corev1.ResourceQuota](),
		},
	}
}

func defaultResourceQuota(quota *corev1.ResourceQuota) {
	rule.RoundUp(quota.Spec.Hard)
	rule.RoundUp(quota.Status.Hard)
	rule.RoundUp(quota.Status.Used)
}

// quotaCell lists what is used of each limit, either of the limits of containers or
// of everything else.
func quotaCell(quota *corev1.ResourceQuota, limits bool) string {
	var pieces []string
	for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
		if strings.HasPrefix(string(name), "limits.") == limits {
			used, hard := quota.Status.Used[name], quota.Status.Hard[name]
			pieces = append(pieces, fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String()))
		}
	}
	return strings.Join(pieces, ", ")
}

func validateQuotaSpec(spec *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	errs := validateQuotaList(spec.Hard, path.Child("hard"))
	errs = append(errs, validateScopes(spec, path.Child("scopes"))...)
	if spec.ScopeSelector != nil {
		errs = append(errs, validateScopeSelector(spec, path)...)
	}
	return errs
}

func validateQuotaList(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path.Key(string(name))
		errs = append(errs, rule.QuotaResourceName(name, at)...)
		errs = append(errs, rule.Quantity(name, list[name], at)...)
	}
	return errs
}

func validateScopes(spec *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, scope := range spec.Scopes {
		if _, known := quotaScopes[scope]; !known {
			errs = append(errs, field.Invalid(path, spec.Scopes, "unsupported scope"))
		}
		for range uncountable(scope, spec.Hard) {
			errs = append(errs, field.Invalid(path, spec.Scopes, "unsupported scope applied to resource"))
		}
	}
	for range conflicting(spec.Scopes) {
		errs = append(errs, field.Invalid(path, spec.Scopes, "conflicting scopes"))
	}
	return errs
}

// uncountable are the limited resources that a scope cannot narrow down.
func uncountable(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) []corev1.ResourceName {
	countable, known := quotaScopes[scope]
	var wrong []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		if known && rule.QuotaResource(name) && !slices.Contains(countable, name) {
			wrong = append(wrong, name)
		}
	}
	return wrong
}

// conflicting are the pairs of scopes that together select nothing.
func conflicting(scopes []corev1.ResourceQuotaScope) [][]corev1.ResourceQuotaScope {
	var found [][]corev1.ResourceQuotaScope
	for _, pair := range oppositeScopes {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			found = append(found, pair)
		}
	}
	return found
}

func validateScopeSelector(spec *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	at := path.Child("scopeSelector", "matchExpressions")
	for _, requirement := range spec.ScopeSelector.MatchExpressions {
		if _, known := quotaScopes[requirement.ScopeName]; !known {
			errs = append(errs, field.Invalid(at.Child("scopeName"), requirement.ScopeName, "unsupported scope"))
		}
		for range uncountable(requirement.ScopeName, spec.Hard) {
			errs = append(errs, field.Invalid(at, spec.ScopeSelector, "unsupported scope applied to resource"))
		}
		errs = append(errs, validateScopeOperator(&requirement, at)...)
		scopes = append(scopes, requirement.ScopeName)
	}
	for range conflicting(scopes) {
		errs = append(errs, field.Invalid(at, spec.Scopes, "conflicting scopes"))
	}
	return errs
}

func validateScopeOperator(requirement *corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	operator := requirement.Operator
	switch requirement.ScopeName {
	case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass:
	default:
		if _, known := quotaScopes[requirement.ScopeName]; known && operator != corev1.ScopeSelectorOpExists {
			errs = append(errs, field.Invalid(
				path.Child("operator"),
				operator,
				"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
			))
		}
	}
	switch operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(requirement.Values) == 0 {
			errs = append(
				errs,
				field.Required(path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
			)
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(requirement.Values) > 0 {
			errs = append(
				errs,
				field.Invalid(
					path.Child("values"),
					requirement.Values,
					"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
				),
			)
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), operator, "not a valid selector operator"))
	}
	return errs
}

// validateQuotaUpdate: another scope would make the recorded use wrong.
func validateQuotaUpdate(quota, old *corev1.ResourceQuota) field.ErrorList {
	errs := validateQuotaSpec(&quota.Spec, field.NewPath("spec"))
	if !sets.New(quota.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "scopes"), quota.Spec.Scopes, validation.FieldImmutableErrorMsg))
	}
	return errs
}

func validateQuotaStatus(quota, _ *corev1.ResourceQuota) field.ErrorList {
	path := field.NewPath("status")
	return append(validateQuotaList(quota.Status.Hard, path.Child("hard")), validateQuotaList(quota.Status.Used, path.Child("used"))...)
}
