package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

var (
	pullPolicies    = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	messagePolicies = []corev1.TerminationMessagePolicy{corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError}
)

// validateContainers judges all containers of a pod but guests; names are unique across them.
func validateContainers(spec *corev1.PodSpec, volumes volumeSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	names := sets.New[string]()
	hostPorts := sets.New[string]()
	for i := range spec.Containers {
		c, at := &spec.Containers[i], path.Child("containers").Index(i)
		errs = append(errs, validateContainer(c, spec, volumes, names, at)...)
		errs = append(errs, validateRestart(c, at)...)
		errs = append(errs, validateCare(c, spec, at)...)
		errs = append(errs, validateHostPorts(c, hostPorts, at)...)
		if spec.HostNetwork {
			errs = append(errs, validateSharedPorts(c.Ports, at.Child("ports"))...)
		}
	}
	for i := range spec.InitContainers {
		c, at := &spec.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(c, spec, volumes, names, at)...)
		errs = append(errs, validateRestart(c, at)...)
		errs = append(errs, validateInitContainer(c, spec, at)...)
		// Init containers run one after another: each may use the same host port. As
		// upstream, the error names the first of them.
		errs = append(errs, validateHostPorts(c, sets.New[string](), path.Child("initContainers").Index(0))...)
	}
	return errs
}

// validateContainer judges what containers, init containers and guests have in common.
func validateContainer(
	c *corev1.Container,
	spec *corev1.PodSpec,
	volumes volumeSet,
	names sets.Set[string],
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, rule.Label(c.Name, path.Child("name"))...)
	}
	if names.Has(c.Name) {
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	}
	names.Insert(c.Name)
	errs = append(errs, rule.Required(c.Image, path.Child("image"))...)
	errs = append(errs, rule.RequiredOneOf(c.TerminationMessagePolicy, messagePolicies, path.Child("terminationMessagePolicy"))...)
	errs = append(errs, validateContainerPorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFiles(c.Env, spec.Volumes, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, validateMounts(c, volumes, path)...)
	errs = append(errs, rule.RequiredOneOf(c.ImagePullPolicy, pullPolicies, path.Child("imagePullPolicy"))...)
	errs = append(errs, validateResources(&c.Resources, rule.ContainerResource, path.Child("resources"))...)
	errs = append(errs, validateClaimed(c.Resources.Claims, spec.ResourceClaims, path.Child("resources", "claims"))...)
	errs = append(errs, validateResizePolicy(c.ResizePolicy, spec.RestartPolicy, path.Child("resizePolicy"))...)
	return append(errs, validateContainerSecurity(c.SecurityContext, spec, path.Child("securityContext"))...)
}

// validateCare judges how a container that keeps running is started, watched and stopped.
func validateCare(c *corev1.Container, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	return append(validateLifecycle(c.Lifecycle, spec, path.Child("lifecycle")), validateProbes(c, path)...)
}

// validateInitContainer: only one that keeps running, a sidecar, can be watched and resized.
func validateInitContainer(c *corev1.Container, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
		return validateCare(c, spec, path)
	}
	var errs field.ErrorList
	for _, forbidden := range []struct {
		set  bool
		name string
	}{
		{c.Lifecycle != nil, "lifecycle"},
		{c.LivenessProbe != nil, "livenessProbe"},
		{c.ReadinessProbe != nil, "readinessProbe"},
		{c.StartupProbe != nil, "startupProbe"},
	} {
		if forbidden.set {
			errs = append(
				errs,
				field.Forbidden(path.Child(forbidden.name), "may not be set for init containers without restartPolicy=Always"),
			)
		}
	}
	for i, policy := range c.ResizePolicy {
		if policy.RestartPolicy == corev1.RestartContainer {
			errs = append(errs, field.Invalid(path.Child("resizePolicy").Index(i).Child("restartPolicy"), policy.RestartPolicy,
				"must not be set to 'RestartContainer' for non-sidecar initContainers"))
		}
	}
	return errs
}

// Image judges the name of a pod's image; what it refers to is found when it is
// pulled. In a template it only has to be there: a controller may trim it.
func Image(image string, path *field.Path) field.ErrorList {
	return append(rule.Required(image, path), ImageSpaces(image, path)...)
}

// ImageSpaces asks for a name without spaces around it.
func ImageSpaces(image string, path *field.Path) field.ErrorList {
	if strings.TrimSpace(image) != image {
		return field.ErrorList{field.Invalid(path, image, "must not have leading or trailing whitespace")}
	}
	return nil
}

func validateContainerPorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			errs = append(errs, rule.Invalid(p.Name, utilvalidation.IsValidPortName(p.Name), at.Child("name"))...)
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, rule.Port(p.ContainerPort, at.Child("containerPort"))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, rule.Port(p.HostPort, at.Child("hostPort"))...)
		}
		errs = append(errs, rule.Protocol(p.Protocol, at.Child("protocol"))...)
	}
	return errs
}

// validateSharedPorts: in the node's network a container's port is the node's.
func validateSharedPorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		if p.HostPort != 0 && p.HostPort != p.ContainerPort {
			errs = append(
				errs,
				field.Invalid(path.Index(i).Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"),
			)
		}
	}
	return errs
}

// validateHostPorts finds host ports that two containers of one pod ask for.
func validateHostPorts(c *corev1.Container, taken sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range c.Ports {
		if p.HostPort == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
		if taken.Has(key) {
			errs = append(errs, field.Duplicate(path.Child("ports").Index(i).Child("hostPort"), key))
		}
		taken.Insert(key)
	}
	return errs
}
