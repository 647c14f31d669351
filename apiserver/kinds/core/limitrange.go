package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

var limitTypes = []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}

func limitRanges() kind.Kind[*corev1.LimitRange] {
	return kind.Kind[*corev1.LimitRange]{
		GroupVersionKind:    corev1.SchemeGroupVersion.WithKind("LimitRange"),
		Plural:              "limitranges",
		ShortNames:          []string{"limits"},
		New:                 func() *corev1.LimitRange { return &corev1.LimitRange{} },
		NewList:             func() runtime.Object { return &corev1.LimitRangeList{} },
		Default:             defaultLimitRange,
		PrepareCreate:       nameLimitRange,
		Validate:            validateLimitRange,
		ValidateUpdate:      func(limits, _ *corev1.LimitRange) field.ErrorList { return validateLimitRange(limits) },
		Spec:                func(limits *corev1.LimitRange) any { return &limits.Spec },
		AllowCreateOnUpdate: true,
		Columns: []kind.Column[*corev1.LimitRange]{
			column.Name[*corev1.LimitRange](),
			column.CreatedAt[*corev1.LimitRange](),
		},
	}
}

// nameLimitRange gives one without a name its uid for a name.
func nameLimitRange(limits *corev1.LimitRange) {
	if limits.Name == "" {
		limits.Name = string(limits.UID)
	}
}

func defaultLimitRange(limits *corev1.LimitRange) {
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		for _, list := range []corev1.ResourceList{item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio} {
			rule.RoundUp(list)
		}
		if item.Type == corev1.LimitTypeContainer {
			defaultContainerLimits(item)
		}
	}
}

// defaultContainerLimits: who says nothing gets the most, and asks for as much as it
// gets, or for the least.
func defaultContainerLimits(item *corev1.LimitRangeItem) {
	if item.Default == nil {
		item.Default = corev1.ResourceList{}
	}
	if item.DefaultRequest == nil {
		item.DefaultRequest = corev1.ResourceList{}
	}
	fillMissing(item.Default, item.Max)
	fillMissing(item.DefaultRequest, item.Default)
	fillMissing(item.DefaultRequest, item.Min)
}

func fillMissing(list, from corev1.ResourceList) {
	for name, quantity := range from {
		if _, set := list[name]; !set {
			list[name] = quantity.DeepCopy()
		}
	}
}

func validateLimitRange(limits *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.LimitType]bool{}
	for i := range limits.Spec.Limits {
		item, path := &limits.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validateLimitType(item.Type, path.Child("type"))...)
		if seen[item.Type] {
			errs = append(errs, field.Duplicate(path.Child("type"), item.Type))
		}
		seen[item.Type] = true
		errs = append(errs, validateLimitItem(item, path)...)
	}
	return errs
}

func validateLimitType(limit corev1.LimitType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, rule.Invalid(limit, utilvalidation.IsQualifiedName(string(limit)), path)...)
	if len(errs) == 0 && !strings.Contains(string(limit), "/") && !slices.Contains(limitTypes, limit) {
		errs = append(errs, field.Invalid(path, limit, "must be a standard limit type or fully qualified"))
	}
	return errs
}

func validateLimitItem(item *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[corev1.ResourceName]()
	for _, list := range []struct {
		name      string
		resources corev1.ResourceList
		perPod    bool // makes sense for a whole pod
	}{
		{"max", item.Max, true}, {"min", item.Min, true}, {"default", item.Default, false},
		{"defaultRequest", item.DefaultRequest, false}, {"maxLimitRequestRatio", item.MaxLimitRequestRatio, true},
	} {
		if item.Type == corev1.LimitTypePod && !list.perPod {
			if len(list.resources) > 0 {
				errs = append(errs, field.Forbidden(path.Child(list.name), "may not be specified when `type` is 'Pod'"))
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(list.resources)) {
			names.Insert(name)
			errs = append(errs, validateLimitResource(item.Type, name, path.Child(list.name).Key(string(name)))...)
		}
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := item.Min[corev1.ResourceStorage]
		if _, most := item.Max[corev1.ResourceStorage]; !least && !most {
			errs = append(
				errs,
				field.Required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"),
			)
		}
	}
	for _, name := range sets.List(names) {
		errs = append(errs, validateLimitOrder(item, name, path)...)
	}
	return errs
}

func validateLimitResource(limit corev1.LimitType, name corev1.ResourceName, path *field.Path) field.ErrorList {
	if limit == corev1.LimitTypePod || limit == corev1.LimitTypeContainer {
		return rule.ContainerResource(name, path)
	}
	return rule.ResourceName(name, path)
}

// validateLimitOrder: min <= default request <= default <= max.
func validateLimitOrder(item *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if item.Type == corev1.LimitTypePod {
		item = &corev1.LimitRangeItem{Min: item.Min, Max: item.Max, MaxLimitRequestRatio: item.MaxLimitRequestRatio}
	}
	for _, pair := range []struct {
		low, high     corev1.ResourceList
		lower, higher string
		at            string
		showHigh      bool // the value in the message is the higher one
	}{
		{item.Min, item.Max, "min value", "max value", "min", false},
		{item.Min, item.DefaultRequest, "min value", "default request value", "defaultRequest", true},
		{item.DefaultRequest, item.Max, "default request value", "max value", "defaultRequest", false},
		{item.DefaultRequest, item.Default, "default request value", "default limit value", "defaultRequest", false},
		{item.Min, item.Default, "min value", "default value", "default", false},
		{item.Default, item.Max, "default value", "max value", "default", true},
	} {
		low, hasLow := pair.low[name]
		high, hasHigh := pair.high[name]
		if !hasLow || !hasHigh || low.Cmp(high) <= 0 {
			continue
		}
		shown := low
		if pair.showHigh {
			shown = high
		}
		errs = append(errs, field.Invalid(path.Child(pair.at).Key(string(name)), shown,
			fmt.Sprintf("%s %s is greater than %s %s", pair.lower, low.String(), pair.higher, high.String())))
	}
	errs = append(errs, validateRatio(item, name, path.Child("maxLimitRequestRatio").Key(string(name)))...)
	request, hasRequest := item.DefaultRequest[name]
	if limit, set := item.Default[name]; set && hasRequest && !rule.Overcommittable(name) && limit.Cmp(request) != 0 {
		errs = append(errs, field.Invalid(path.Child("defaultRequest").Key(string(name)), request,
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit.String(), request.String(), name)))
	}
	return errs
}

// validateRatio: the ratio of limit and request is at least 1, and cannot be larger
// than that of the bounds.
func validateRatio(item *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) field.ErrorList {
	ratio, set := item.MaxLimitRequestRatio[name]
	if !set {
		return nil
	}
	var errs field.ErrorList
	if ratio.Cmp(resource.MustParse("1")) < 0 {
		errs = append(errs, field.Invalid(path, ratio, fmt.Sprintf("ratio %s is less than 1", ratio.String())))
	}
	least, hasMin := item.Min[name]
	most, hasMax := item.Max[name]
	if !hasMin || !hasMax {
		return errs
	}
	if possible := most.AsApproximateFloat64() / least.AsApproximateFloat64(); ratio.AsApproximateFloat64() > possible {
		errs = append(errs, field.Invalid(path, ratio, fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), possible)))
	}
	return errs
}
