package podspec

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

var restartPolicies = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}

// Validate judges a spec that has its defaults, in a pod or in a template.
func Validate(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	volumes, errs := validateVolumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, validateResourceClaims(spec.ResourceClaims, path.Child("resourceClaims"))...)
	errs = append(errs, validateContainers(spec, volumes, path)...)
	errs = append(errs, validateEphemeral(spec, volumes, path.Child("ephemeralContainers"))...)
	errs = append(errs, validatePodResources(spec, path.Child("resources"))...)
	errs = append(errs, validateRestartPolicy(spec.RestartPolicy, path.Child("restartPolicy"))...)
	errs = append(errs, validateDNS(spec, path)...)
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validatePodSecurity(spec, path)...)
	errs = append(errs, validateScheduling(spec, path)...)
	errs = append(errs, validatePodNames(spec, path)...)
	errs = append(
		errs,
		validateResources(&corev1.ResourceRequirements{Limits: spec.Overhead}, rule.ContainerResource, path.Child("overhead"))...)
	errs = append(errs, validateOS(spec, path)...)
	return append(errs, validateDeadline(spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
}

func validateRestartPolicy(policy corev1.RestartPolicy, path *field.Path) field.ErrorList {
	if policy == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.OneOf(policy, restartPolicies, path)
}

func validateDeadline(seconds *int64, path *field.Path) field.ErrorList {
	if seconds != nil && (*seconds < 1 || *seconds > math.MaxInt32) {
		return field.ErrorList{field.Invalid(path, *seconds, utilvalidation.InclusiveRangeError(1, math.MaxInt32))}
	}
	return nil
}

// validatePodNames judges the names of other things that a spec holds.
func validatePodNames(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ServiceAccountName != "" {
		errs = append(errs, rule.Subdomain(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
	}
	if spec.NodeName != "" {
		errs = append(errs, rule.Subdomain(spec.NodeName, path.Child("nodeName"))...)
	}
	if spec.Hostname != "" {
		errs = append(errs, rule.Label(spec.Hostname, path.Child("hostname"))...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, rule.Label(spec.Subdomain, path.Child("subdomain"))...)
	}
	errs = append(errs, validateHostnameOverride(spec, path.Child("hostnameOverride"))...)
	if spec.PriorityClassName != "" {
		errs = append(errs, rule.Subdomain(spec.PriorityClassName, path.Child("priorityClassName"))...)
	}
	if spec.RuntimeClassName != nil {
		errs = append(errs, rule.Subdomain(*spec.RuntimeClassName, path.Child("runtimeClassName"))...)
	}
	if spec.PreemptionPolicy != nil {
		errs = append(
			errs,
			rule.OneOf(
				*spec.PreemptionPolicy,
				[]corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever},
				path.Child("preemptionPolicy"),
			)...)
	}
	return append(errs, validateHostAliases(spec.HostAliases, path.Child("hostAliases"))...)
}

// hostnameMax is the longest name that a Linux kernel keeps, in bytes.
const hostnameMax = 64

func validateHostnameOverride(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if spec.HostnameOverride == nil {
		return nil
	}
	var errs field.ErrorList
	if rule.IsTrue(spec.SetHostnameAsFQDN) {
		errs = append(errs, field.Forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(path, "may not be specified when hostNetwork is true"))
	}
	if len(*spec.HostnameOverride) > hostnameMax {
		errs = append(errs, field.TooLong(path, "", hostnameMax))
	}
	return append(errs, rule.Subdomain(*spec.HostnameOverride, path)...)
}

func validateHostAliases(aliases []corev1.HostAlias, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, alias := range aliases {
		errs = append(errs, rule.LegacyIP(alias.IP, path.Index(i).Child("ip"))...)
		for j, name := range alias.Hostnames {
			errs = append(errs, rule.Subdomain(name, path.Index(i).Child("hostnames").Index(j))...)
		}
	}
	return errs
}
