package workload

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
)

// ValidateTemplate judges the template of pods that restart always, against the
// selector with which their owner will look for them.
func ValidateTemplate(template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if matcher, err := metav1.LabelSelectorAsSelector(selector); err == nil && !matcher.Empty() {
		if !matcher.Matches(labels.Set(template.Labels)) {
			errs = append(errs, field.Invalid(path.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
		}
	}
	errs = append(errs, ValidatePodTemplate(template, path)...)
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), template.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported"))
	}
	return errs
}

// ValidatePodTemplate judges a template, whoever makes pods from it.
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

// SelectorCell prints a selector for a table.
func SelectorCell(selector *metav1.LabelSelector) string {
	return column.OrNone(metav1.FormatLabelSelector(selector))
}

// ContainerNames and ContainerImages list the containers of a template.
func ContainerNames(spec *corev1.PodSpec) string {
	names := make([]string, len(spec.Containers))
	for i := range spec.Containers {
		names[i] = spec.Containers[i].Name
	}
	return strings.Join(names, ",")
}

// ContainerImages lists the images of a template for a table.
func ContainerImages(spec *corev1.PodSpec) string {
	images := make([]string, len(spec.Containers))
	for i := range spec.Containers {
		images[i] = spec.Containers[i].Image
	}
	return strings.Join(images, ",")
}

// ValidateIntOrPercent accepts a number ≥ 0 or a percentage.
func ValidateIntOrPercent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if value.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(value.IntValue()), path)
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsValidPercent(value.StrVal) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

// Warnings tell of what a template's pods will be accepted with but not do.
func Warnings(template *corev1.PodTemplateSpec) []string {
	return podspec.Warnings(&template.Spec, field.NewPath("spec", "template", "spec"))
}
