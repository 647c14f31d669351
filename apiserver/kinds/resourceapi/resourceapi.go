package resourceapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// omitted stands in messages for what is too long to show.
const omitted = "<value omitted>"

// taintEffects in the order of messages.
var taintEffects = []resourcev1.DeviceTaintEffect{
	resourcev1.DeviceTaintEffectNoExecute,
	resourcev1.DeviceTaintEffectNoSchedule,
	resourcev1.DeviceTaintEffectNone,
}

// Kinds returns the kinds in the order in which discovery lists them.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(deviceClasses()),
		resource.Erase(taintRules()),
		resource.Erase(claims()),
		resource.Erase(claimTemplates()),
		resource.Erase(slicesOfDevices()),
	}
}

// validateEach judges a list of limited length; a limit of 0 is none.
func validateEach[T any](list []T, limit int, judge func(T, *field.Path) field.ErrorList, path *field.Path) field.ErrorList {
	if limit > 0 && len(list) > limit {
		return field.ErrorList{field.TooMany(path, len(list), limit)}
	}
	var errs field.ErrorList
	for i, item := range list {
		errs = append(errs, judge(item, path.Index(i))...)
	}
	return errs
}

// validateSet is validateEach for a list whose items have keys.
func validateSet[T any, K comparable](
	list []T,
	limit int,
	key func(T) K,
	judge func(T, *field.Path) field.ErrorList,
	path *field.Path,
) field.ErrorList {
	errs := validateEach(list, limit, judge, path)
	if limit > 0 && len(list) > limit {
		return errs
	}
	seen := map[K]bool{}
	for i, item := range list {
		k := key(item)
		if seen[k] {
			errs = append(errs, field.Duplicate(path.Index(i), k))
		}
		seen[k] = true
	}
	return errs
}

func itself(name string) string { return name }

func validateDriver(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return rule.Required(name, path)
	}
	return rule.DriverName(name, path)
}

// validatePool: a pool is named by subdomains with slashes between them.
func validatePool(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return rule.Required(name, path)
	}
	var errs field.ErrorList
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(path, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, rule.Subdomain(part, path)...)
	}
	return errs
}

// validateQualified: an identifier of C, perhaps with the domain of a driver before it.
func validateQualified(name string, path *field.Path) field.ErrorList {
	domain, id, found := strings.Cut(name, "/")
	if !found {
		return validateIdentifier(name, path)
	}
	var errs field.ErrorList
	if domain == "" {
		errs = append(errs, field.Invalid(path, "", "the domain must not be empty"))
	} else {
		errs = append(errs, validateDriver(domain, path)...)
	}
	if id == "" {
		return append(errs, field.Invalid(path, "", "the name must not be empty"))
	}
	return append(errs, validateIdentifier(id, path)...)
}

func validateFullyQualified(name *resourcev1.FullyQualifiedName, path *field.Path) field.ErrorList {
	errs := validateQualified(string(*name), path)
	if !strings.Contains(string(*name), "/") {
		errs = append(errs, field.Invalid(path, *name, "a fully qualified name must be a domain and a name separated by a slash"))
	}
	return errs
}

func validateIdentifier(id string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(path, "", resourcev1.DeviceMaxIDLength))
	}
	errs = append(errs, rule.Invalid(id, content.IsCIdentifier(id), path)...)
	return errs
}

func validateLabelValue(value string, path *field.Path) field.ErrorList {
	return rule.Invalid(value, utilvalidation.IsValidLabelValue(value), path)
}

func validateTaint(taint *resourcev1.DeviceTaint, effectKept bool, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabelName(taint.Key, path.Child("key"))
	errs = append(errs, validateLabelValue(taint.Value, path.Child("value"))...)
	if effectKept {
		return errs
	}
	return append(errs, rule.RequiredOneOf(taint.Effect, taintEffects, path.Child("effect"))...)
}

func validateToleration(toleration resourcev1.DeviceToleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if toleration.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
	}
	switch toleration.Operator {
	case resourcev1.DeviceTolerationOpExists:
		if toleration.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), toleration.Value, "must be empty for operator `Exists`"))
		}
	case resourcev1.DeviceTolerationOpEqual:
		errs = append(errs, validateLabelValue(toleration.Value, path.Child("value"))...)
	default:
		errs = append(errs, rule.RequiredOneOf(toleration.Operator, []resourcev1.DeviceTolerationOperator{
			resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists,
		}, path.Child("operator"))...)
	}
	if toleration.Effect == "" {
		return errs
	}
	return append(errs, rule.OneOf(toleration.Effect, taintEffects, path.Child("effect"))...)
}

// validateBinding: a device that needs something before it can be used says also
// what shows that it will not get it.
func validateBinding(conditions, failures []string, path *field.Path) field.ErrorList {
	good, bad := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	errs := validateSet(conditions, resourcev1.BindingConditionsMaxSize, itself, metav1validation.ValidateLabelName, good)
	errs = append(
		errs,
		validateSet(failures, resourcev1.BindingFailureConditionsMaxSize, itself, metav1validation.ValidateLabelName, bad)...)
	for i, failure := range failures {
		if slices.Contains(conditions, failure) {
			errs = append(errs, field.Invalid(bad.Index(i), failure, "bindingFailureConditions must not overlap with bindingConditions"))
		}
	}
	switch {
	case len(conditions) == 0 && len(failures) > 0:
		errs = append(errs, field.Invalid(good, conditions, "bindingConditions are required to use bindingFailureConditions"))
	case len(failures) == 0 && len(conditions) > 0:
		errs = append(errs, field.Invalid(bad, failures, "bindingFailureConditions are required to use bindingConditions"))
	}
	return errs
}

// validateConfig judges parameters for a driver: a JSON object that only it understands.
func validateConfig(config *resourcev1.DeviceConfiguration, stored bool, path *field.Path) field.ErrorList {
	if config.Opaque == nil {
		return field.ErrorList{field.Required(path.Child("opaque"), "")}
	}
	at := path.Child("opaque")
	errs := validateDriver(config.Opaque.Driver, at.Child("driver"))
	return append(errs, validateObject(config.Opaque.Parameters, stored, resourcev1.OpaqueParametersMaxLength, at.Child("parameters"))...)
}

func validateObject(data runtime.RawExtension, stored bool, limit int, path *field.Path) field.ErrorList {
	if len(data.Raw) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if !stored && len(data.Raw) > limit {
		return field.ErrorList{field.TooLong(path, "", limit)}
	}
	var value any
	if err := json.Unmarshal(data.Raw, &value); err != nil {
		return field.ErrorList{field.Invalid(path, omitted, fmt.Sprintf("error parsing data as JSON: %v", err))}
	}
	if value == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	if _, isObject := value.(map[string]any); !isObject {
		return field.ErrorList{field.Invalid(path, omitted, "must be a valid JSON object")}
	}
	return nil
}
