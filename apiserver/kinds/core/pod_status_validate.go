package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validatePodStatus: what a node reports must be about the pod it was given.
func validatePodStatus(pod, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	errs = append(errs, validateNomination(pod, old, path.Child("nominatedNodeName"))...)
	if pod.Status.ObservedGeneration < 0 {
		errs = append(errs, field.Invalid(path.Child("observedGeneration"), pod.Status.ObservedGeneration, nonnegative))
	}
	if old.Status.QOSClass != "" {
		errs = append(errs, validation.ValidateImmutableField(pod.Status.QOSClass, old.Status.QOSClass, path.Child("qosClass"))...)
	}
	for i, condition := range pod.Status.Conditions {
		if condition.ObservedGeneration < 0 {
			errs = append(
				errs,
				field.Invalid(path.Child("conditions").Index(i).Child("observedGeneration"), condition.ObservedGeneration, nonnegative),
			)
		}
		if systemCondition(condition.Type) {
			continue
		}
		errs = append(
			errs,
			rule.Invalid(
				condition.Type,
				utilvalidation.IsQualifiedName(string(condition.Type)),
				path.Child("conditions").Index(i).Child("type"),
			)...)
	}
	errs = append(errs, validatePodIPs(pod, old, path.Child("podIPs"))...)
	errs = append(errs, validateHostIPs(pod, old, path.Child("hostIPs"))...)
	errs = append(errs, validateClaimStatuses(pod, path.Child("resourceClaimStatuses"))...)
	errs = append(errs, validateExtendedClaim(pod, path.Child("extendedResourceClaimStatus"))...)
	errs = append(
		errs,
		validateAllocated(
			pod.Status.ContainerStatuses,
			pod.Spec.Containers,
			pod.Status.ExtendedResourceClaimStatus,
			path.Child("containerStatuses"),
		)...)
	errs = append(
		errs,
		validateAllocated(
			pod.Status.InitContainerStatuses,
			pod.Spec.InitContainers,
			pod.Status.ExtendedResourceClaimStatus,
			path.Child("initContainerStatuses"),
		)...)
	for i := range pod.Status.EphemeralContainerStatuses {
		if len(pod.Status.EphemeralContainerStatuses[i].AllocatedResourcesStatus) > 0 {
			errs = append(
				errs,
				field.Forbidden(
					path.Child("ephemeralContainerStatuses").Index(i).Child("allocatedResourcesStatus"),
					"must not be specified in container status",
				),
			)
		}
	}
	errs = append(errs, validateTransitions(pod.Status.ContainerStatuses, old, path.Child("containerStatuses"))...)
	return errs
}

const nonnegative = "must be a non-negative integer"

// validateNomination: room is promised to pods that wait, not to those that have a node.
func validateNomination(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	name := pod.Status.NominatedNodeName
	if name == "" || name == old.Status.NominatedNodeName {
		return nil
	}
	errs := rule.Subdomain(name, path)
	if old.Spec.NodeName != "" {
		errs = append(errs, field.Forbidden(path, "may not be set on pods that are already bound to a node"))
	}
	return errs
}

func validatePodIPs(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	ips, was := make([]string, len(pod.Status.PodIPs)), make([]string, len(old.Status.PodIPs))
	for i, ip := range pod.Status.PodIPs {
		ips[i] = ip.IP
	}
	for i, ip := range old.Status.PodIPs {
		was[i] = ip.IP
	}
	errs := validateIPs(ips, was, pod.Status.PodIPs, path)
	switch {
	case (pod.Status.PodIP != "") != (len(ips) > 0):
		errs = append(errs, field.Invalid(path, pod.Status.PodIPs, "podIP and podIPs must either both be set or both be unset"))
	case len(ips) > 0 && pod.Status.PodIP != ips[0]:
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), ips[0], "must be equal to `podIP`"))
	}
	return errs
}

func validateHostIPs(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	ips, was := make([]string, len(pod.Status.HostIPs)), make([]string, len(old.Status.HostIPs))
	for i, ip := range pod.Status.HostIPs {
		ips[i] = ip.IP
	}
	for i, ip := range old.Status.HostIPs {
		was[i] = ip.IP
	}
	var errs field.ErrorList
	if len(ips) > 0 && pod.Status.HostIP != ips[0] {
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), ips[0], "must be equal to `hostIP`"))
	}
	return append(errs, validateIPs(ips, was, pod.Status.HostIPs, path)...)
}

// validateIPs asks for addresses, one of each family; what was there before may stay.
func validateIPs(ips, was []string, value any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		if !slices.Contains(was, ip) {
			errs = append(errs, rule.IP(ip, path.Index(i))...)
		}
	}
	if len(ips) > 2 || len(ips) == 2 && isIPv6(ips[0]) == isIPv6(ips[1]) {
		errs = append(errs, field.Invalid(path, value, "may specify no more than one IP for each IP family"))
	}
	return errs
}

func validateClaimStatuses(pod *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, status := range pod.Status.ResourceClaimStatuses {
		at := path.Index(i)
		if !slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == status.Name }) {
			errs = append(errs, field.Invalid(at.Child("name"), status.Name, "must match the name of an entry in `spec.resourceClaims`"))
		}
		if seen.Has(status.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), status.Name))
		}
		seen.Insert(status.Name)
		if status.ResourceClaimName != nil {
			errs = append(errs, rule.Subdomain(*status.ResourceClaimName, at.Child("resourceClaimName"))...)
		}
	}
	return errs
}

// validateExtendedClaim judges the claim that a scheduler made for extended resources that devices offer.
func validateExtendedClaim(pod *corev1.Pod, path *field.Path) field.ErrorList {
	status := pod.Status.ExtendedResourceClaimStatus
	if status == nil {
		return nil
	}
	var errs field.ErrorList
	mappings := path.Child("requestMappings")
	if len(status.RequestMappings) == 0 {
		errs = append(errs, field.Required(mappings, "at least one request mapping is required"))
	}
	seen := sets.New[corev1.ContainerExtendedResourceRequest]()
	for i, mapping := range status.RequestMappings {
		at := mappings.Index(i)
		errs = append(errs, validateMapping(&pod.Spec, mapping, at)...)
		errs = append(errs, rule.Label(mapping.RequestName, path.Child("requestName"))...)
		if seen.Has(mapping) {
			errs = append(
				errs,
				field.Duplicate(at.Child("containerName"), mapping.ContainerName),
				field.Duplicate(
					at.Child("resourceName"),
					mapping.ResourceName,
				),
				field.Duplicate(at.Child("requestName"), mapping.RequestName),
			)
		}
		seen.Insert(mapping)
	}
	at := path.Child("resourceClaimName")
	if status.ResourceClaimName == "" {
		return append(errs, field.Required(at, ""))
	}
	return append(errs, rule.Subdomain(status.ResourceClaimName, at)...)
}

// validateMapping: the resource is one that the container requests.
func validateMapping(spec *corev1.PodSpec, mapping corev1.ContainerExtendedResourceRequest, at *field.Path) field.ErrorList {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name != mapping.ContainerName {
			continue
		}
		if _, requested := c.Resources.Requests[corev1.ResourceName(mapping.ResourceName)]; !requested {
			return field.ErrorList{field.Invalid(
				at.Child("resourceName"),
				mapping.ResourceName,
				"must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests",
			)}
		}
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("containerName"), mapping.ContainerName,
		"must match the name of an entry in spec.initContainers.name or spec.containers.name")}
}

func systemCondition(condition corev1.PodConditionType) bool {
	switch condition {
	case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady:
		return true
	}
	return false
}

// validateTransitions: a container that ended for good never runs again.
func validateTransitions(statuses []corev1.ContainerStatus, old *corev1.Pod, path *field.Path) field.ErrorList {
	if old.Spec.RestartPolicy == corev1.RestartPolicyAlways || hasRestartRules(&old.Spec) {
		return nil
	}
	var errs field.ErrorList
	for i, now := range statuses {
		for _, was := range old.Status.ContainerStatuses {
			done := was.State.Terminated
			if was.Name != now.Name || done == nil || now.State.Terminated != nil {
				continue
			}
			if old.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && done.ExitCode != 0 {
				continue
			}
			errs = append(errs, field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

// hasRestartRules: containers say for themselves when they run again, or one of them, maybe an init container, when all do.
func hasRestartRules(spec *corev1.PodSpec) bool {
	own := func(c corev1.Container) bool { return c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0 }
	ofAll := func(r corev1.ContainerRestartRule) bool {
		return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	}
	return slices.ContainsFunc(spec.Containers, own) ||
		slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return slices.ContainsFunc(c.RestartPolicyRules, ofAll) })
}
