package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// ValidateTemplate judges the template of pods that restart always, against the
// selector with which their owner, of a kind that messages name, will look for them.
func ValidateTemplate(template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	errs := ValidateSelected(template, selector, path)
	errs = append(errs, ValidatePodTemplate(template, path)...)
	return append(errs, ValidateEndless(template, kind, path)...)
}

// ValidateSelected asks that the owner's selector finds the pods of the template.
func ValidateSelected(template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || matcher.Empty() || matcher.Matches(labels.Set(template.Labels)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`")}
}

// ValidateEndless asks for pods that restart always and have no deadline.
func ValidateEndless(template *corev1.PodTemplateSpec, kind string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), template.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(
			errs,
			field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), fmt.Sprintf("activeDeadlineSeconds in %s is not Supported", kind)),
		)
	}
	return errs
}

// ValidatePodTemplate validates the pod template of any workload.
func ValidatePodTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	errs = append(errs, podspec.Validate(&template.Spec, path.Child("spec"))...)
	if len(template.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

// ValidateSelector asks for a selector that selects something less than everything.
func ValidateSelector(selector *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, selector, fmt.Sprintf("empty selector is invalid for %s", kind)))
	}
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		errs = append(errs, field.Invalid(path, selector, "invalid label selector"))
	}
	return errs
}

// SelectorText is a label selector as clients of the scale subresource parse it.
func SelectorText(selector *metav1.LabelSelector) string {
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return ""
	}
	return matcher.String()
}

// ValidateIntOrPercent accepts a number ≥ 0 or a percentage.
func ValidateIntOrPercent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if value.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(value.IntValue()), path)
	}
	return rule.Invalid(value, utilvalidation.IsValidPercent(value.StrVal), path)
}

// NamedTemplateWarnings are NameWarnings, and tell whoever creates an object, or changes its spec, what its template's pods will be
// accepted with but not do.
func NamedTemplateWarnings[T resource.Object](template func(T) *corev1.PodTemplateSpec) func(obj, old T) []string {
	return func(obj, old T) []string {
		warnings := NameWarnings(obj, old)
		if t := template(obj); t != nil && Changed(obj, old) {
			warnings = append(warnings, podwarnings.Template(t, field.NewPath("spec", "template"))...)
		}
		return warnings
	}
}

// Changed reports whether an object is new, or its spec changed.
func Changed[T resource.Object](obj, old T) bool {
	return isNew(old) || obj.GetGeneration() != old.GetGeneration()
}

// isNew reports whether there is no former object.
func isNew[T resource.Object](old T) bool {
	var none T
	return any(old) == any(none)
}

// NameWarnings tells who creates what names pods after itself that the name does for no host.
func NameWarnings[T resource.Object](obj, old T) []string {
	if !isNew(old) {
		return nil
	}
	msgs := utilvalidation.IsDNS1123Label(obj.GetName())
	if len(msgs) == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v",
			msgs,
		),
	}
}

// ValidatePercentMax refuses more than all.
func ValidatePercentMax(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if percent, isPercent := percentage(value); isPercent && percent > 100 {
		return field.ErrorList{field.Invalid(path, value, "must not be greater than 100%")}
	}
	return nil
}

// Amount is the number, or the number before the percent sign.
func Amount(value intstr.IntOrString) int {
	if percent, isPercent := percentage(value); isPercent {
		return percent
	}
	return value.IntValue()
}

func percentage(value intstr.IntOrString) (percent int, isPercent bool) {
	if value.Type != intstr.String {
		return 0, false
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(&value, 100, false)
	return percent, err == nil
}

// ValidateCollisionCount: going back would give a new object the name of an old one.
func ValidateCollisionCount(count, old *int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	rule.NonnegativePointer(&errs, count, path)
	if old != nil && ptr.Deref(count, 0) < *old {
		errs = append(errs, field.Invalid(path, ptr.Deref(count, 0), "cannot be decremented"))
	}
	return errs
}
