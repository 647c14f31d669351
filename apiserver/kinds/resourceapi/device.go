package resourceapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// policyOptionsMax is how many amounts of a capacity a policy may list.
const policyOptionsMax = 10

// version is a version as semver.org 2.0.0 writes it.
var version = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// validateDevice judges a device; old is nil for a new one. What did not change of
// capacity and taints stays valid.
func validateDevice(device, old *resourcev1.Device, placed bool, path *field.Path) field.ErrorList {
	errs := rule.Label(device.Name, path.Child("name"))
	if n := len(device.Attributes) + len(device.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(
			errs,
			field.Invalid(
				path,
				n,
				fmt.Sprintf(
					"the total number of attributes and capacities must not exceed %d",
					resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice,
				),
			),
		)
	}
	errs = append(errs, validateMap(device.Attributes, validateAttribute, path.Child("attributes"))...)
	if old == nil || !equality.Semantic.DeepEqual(device.Capacity, old.Capacity) {
		shared := rule.IsTrue(device.AllowMultipleAllocations)
		errs = append(errs, validateMap(device.Capacity, func(capacity resourcev1.DeviceCapacity, at *field.Path) field.ErrorList {
			return validateCapacity(&capacity, shared, at)
		}, path.Child("capacity"))...)
	}
	if old == nil || !equality.Semantic.DeepEqual(device.Taints, old.Taints) {
		errs = append(
			errs,
			validateEach(
				device.Taints,
				resourcev1.DeviceTaintsMaxLength,
				func(taint resourcev1.DeviceTaint, at *field.Path) field.ErrorList {
					return validateTaint(&taint, false, at)
				},
				path.Child("taints"),
			)...)
	}
	errs = append(errs, validateSet(device.ConsumesCounters, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice,
		func(use resourcev1.DeviceCounterConsumption) string { return use.CounterSet },
		func(use resourcev1.DeviceCounterConsumption, at *field.Path) field.ErrorList {
			return validateCounters(
				use.CounterSet,
				at.Child("counterSet"),
				use.Counters,
				resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption,
				at.Child("counters"),
			)
		}, path.Child("consumesCounters"))...)
	errs = append(errs, validateDevicePlace(device, placed, path)...)
	return append(errs, validateBinding(device.BindingConditions, device.BindingFailureConditions, path)...)
}

func validateDevicePlace(device *resourcev1.Device, placed bool, path *field.Path) field.ErrorList {
	if !placed {
		if device.NodeName == nil && device.NodeSelector == nil && device.AllNodes == nil {
			return nil
		}
		return field.ErrorList{
			field.Invalid(
				path,
				nil,
				"`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
			),
		}
	}
	const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	set, errs := placesSet(device.NodeName, device.NodeSelector, device.AllNodes, "must not be empty", path)
	switch len(set) {
	case 0:
		return append(errs, field.Required(path, one))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(path, "{"+strings.Join(set, ", ")+"}", one))
}

// validateMap judges what has qualified names, in the order of the names.
func validateMap[T any](
	entries map[resourcev1.QualifiedName]T,
	judge func(T, *field.Path) field.ErrorList,
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		errs = append(errs, validateQualified(string(name), path)...)
		errs = append(errs, judge(entries[name], path.Key(shortened(string(name))))...)
	}
	return errs
}

// shortened keeps both ends of a name that is longer than any valid one.
func shortened(name string) string {
	const limit, dots = resourcev1.DeviceMaxDomainLength + 1 + resourcev1.DeviceMaxIDLength, "..."
	if len(name) <= limit {
		return name
	}
	rest := limit - len(dots)
	return name[:(rest+1)/2] + dots + name[len(name)-rest/2:]
}

func validateAttribute(attribute resourcev1.DeviceAttribute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := 0
	for _, set := range []bool{attribute.BoolValue != nil, attribute.IntValue != nil, attribute.StringValue != nil,
		attribute.VersionValue != nil} {
		if set {
			values++
		}
	}
	if text := attribute.StringValue; text != nil && len(*text) > resourcev1.DeviceAttributeMaxValueLength {
		errs = append(errs, field.TooLong(path.Child("string"), "", resourcev1.DeviceAttributeMaxValueLength))
	}
	if text, at := attribute.VersionValue, path.Child("version"); text != nil {
		if !version.MatchString(*text) {
			errs = append(errs, field.Invalid(at, *text, "must be a string compatible with semver.org spec 2.0.0"))
		}
		if len(*text) > resourcev1.DeviceAttributeMaxValueLength {
			errs = append(errs, field.TooLong(at, "", resourcev1.DeviceAttributeMaxValueLength))
		}
	}
	switch values {
	case 0:
		return append(errs, field.Invalid(path, "", "exactly one value must be specified"))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(path, attribute, "exactly one value must be specified"))
}

func validateCounters[K ~string](
	set string,
	setPath *field.Path,
	counters map[K]resourcev1.Counter,
	limit int,
	path *field.Path,
) field.ErrorList {
	errs := rule.Required(set, setPath)
	if set != "" {
		errs = append(errs, rule.Label(set, setPath)...)
	}
	switch n := len(counters); {
	case n == 0:
		return append(errs, field.Required(path, ""))
	case n > limit:
		return append(errs, field.TooMany(path, n, limit))
	}
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		errs = append(errs, rule.Label(string(name), path)...)
	}
	return errs
}

// validateCapacity: how much of a capacity a request gets matters only where
// several requests share the device.
func validateCapacity(capacity *resourcev1.DeviceCapacity, shared bool, path *field.Path) field.ErrorList {
	policy, at := capacity.RequestPolicy, path.Child("requestPolicy")
	switch {
	case policy == nil:
		return nil
	case !shared:
		return field.ErrorList{field.Forbidden(at, "allowMultipleAllocations must be true")}
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		return field.ErrorList{
			field.Forbidden(at, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`),
		}
	case len(policy.ValidValues) > 0 && policy.Default == nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validValues is defined")}
	case len(policy.ValidValues) > 0:
		return validateValues(policy.ValidValues, policy.Default, &capacity.Value, at.Child("validValues"))
	case policy.ValidRange != nil && policy.Default == nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validRange is defined")}
	case policy.ValidRange != nil:
		return validateRange(policy.ValidRange, policy.Default, &capacity.Value, at.Child("validRange"))
	}
	return nil
}

func validateValues(values []apiresource.Quantity, standard, limit *apiresource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := 1; i < len(values); i++ {
		if values[i-1].Cmp(values[i]) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), values[i].String(), "values must be sorted in ascending order"))
		}
	}
	found := false
	errs = append(
		errs,
		validateSet(values, policyOptionsMax, func(value apiresource.Quantity) string { return strconv.FormatInt(value.Value(), 10) },
			func(value apiresource.Quantity, at *field.Path) field.ErrorList {
				found = found || value.Cmp(*standard) == 0
				if value.Cmp(*limit) > 0 {
					return field.ErrorList{field.Invalid(at, value.String(), "option is larger than capacity value: "+limit.String())}
				}
				return nil
			}, path)...)
	if !found {
		errs = append(errs, field.Invalid(path, standard.String(), "default value is not valid according to the requestPolicy"))
	}
	return errs
}

func validateRange(r *resourcev1.CapacityRequestPolicyRange, standard, limit *apiresource.Quantity, path *field.Path) field.ErrorList {
	if r.Min == nil {
		return field.ErrorList{field.Required(path.Child("min"), "required when validRange is defined")}
	}
	var errs field.ErrorList
	if r.Min.Cmp(*limit) > 0 {
		errs = append(errs, field.Invalid(path.Child("min"), r.Min.String(), "min is larger than capacity value: "+limit.String()))
	}
	if standard.Cmp(*r.Min) < 0 {
		errs = append(errs, field.Invalid(path.Child("default"), standard.String(), "default is less than min: "+r.Min.String()))
	}
	if r.Max != nil {
		if r.Min.Cmp(*r.Max) > 0 {
			errs = append(errs, field.Invalid(path.Child("max"), r.Min.String(), "min is larger than max: "+r.Max.String()))
		}
		if r.Max.Cmp(*limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("max"), r.Max.String(), "max is larger than capacity value: "+limit.String()))
		}
		if standard.Cmp(*r.Max) > 0 {
			errs = append(errs, field.Invalid(path.Child("default"), standard.String(), "default is more than max: "+r.Max.String()))
		}
	}
	if r.Step == nil {
		return errs
	}
	return append(errs, validateStep(r, standard, limit, path)...)
}

// validateStep: amounts go up from the smallest in equal steps.
func validateStep(r *resourcev1.CapacityRequestPolicyRange, standard, limit *apiresource.Quantity, path *field.Path) field.ErrorList {
	at := path.Child("step")
	if r.Step.Value() <= 0 {
		return field.ErrorList{field.Invalid(at, r.Step.String(), "must be greater than zero")}
	}
	var errs field.ErrorList
	first := r.Min.DeepCopy()
	first.Add(*r.Step)
	if first.Cmp(*limit) > 0 {
		errs = append(
			errs,
			field.Invalid(
				at,
				r.Step.String(),
				fmt.Sprintf("one step %s is larger than capacity value: %s", first.String(), limit.String()),
			),
		)
	}
	for _, amount := range []*apiresource.Quantity{standard, r.Max} {
		if amount != nil && (amount.Value()-r.Min.Value())%r.Step.Value() != 0 {
			errs = append(
				errs,
				field.Invalid(
					at,
					amount.String(),
					fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step.String(), r.Min.String()),
				),
			)
		}
	}
	return errs
}
