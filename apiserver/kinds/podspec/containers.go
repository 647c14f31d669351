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

// validateContainers judges all containers of a pod; names are unique across them.
func validateContainers(spec *corev1.PodSpec, volumes volumeSet, path *field.Path) field.ErrorList {
	if len(spec.Containers) == 0 {
		return field.ErrorList{field.Required(path.Child("containers"), "")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	hostPorts := sets.New[string]()
	for i := range spec.Containers {
		at := path.Child("containers").Index(i)
		errs = append(errs, validateContainer(&spec.Containers[i], spec, volumes, names, at)...)
		errs = append(errs, validateHostPorts(&spec.Containers[i], hostPorts, at)...)
	}
	for i := range spec.InitContainers {
		at := path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(&spec.InitContainers[i], spec, volumes, names, at)...)
		errs = append(errs, validateInitContainer(&spec.InitContainers[i], at)...)
		// Init containers run one after another: each may use the same host port.
		errs = append(errs, validateHostPorts(&spec.InitContainers[i], sets.New[string](), at)...)
	}
	return errs
}

func validateContainer(c *corev1.Container, spec *corev1.PodSpec, volumes volumeSet, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	case names.Has(c.Name):
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	default:
		errs = append(errs, rule.Label(c.Name, path.Child("name"))...)
	}
	names.Insert(c.Name)
	errs = append(errs, Image(c.Image, path.Child("image"))...)
	errs = append(errs, rule.RequiredOneOf(c.TerminationMessagePolicy, messagePolicies, path.Child("terminationMessagePolicy"))...)
	errs = append(errs, validateContainerPorts(c.Ports, spec.HostNetwork, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, validateMounts(c, volumes, path)...)
	errs = append(errs, rule.RequiredOneOf(c.ImagePullPolicy, pullPolicies, path.Child("imagePullPolicy"))...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"))...)
	errs = append(errs, validateClaimed(c.Resources.Claims, spec.ResourceClaims, path.Child("resources", "claims"))...)
	errs = append(errs, validateResizePolicy(c.ResizePolicy, spec.RestartPolicy, path.Child("resizePolicy"))...)
	errs = append(errs, validateRestart(c, path)...)
	errs = append(errs, validateContainerSecurity(c.SecurityContext, spec, path.Child("securityContext"))...)
	errs = append(errs, validateLifecycle(c.Lifecycle, spec, path.Child("lifecycle"))...)
	return append(errs, validateProbes(c, path)...)
}

// validateInitContainer: only one that keeps running, a sidecar, can be probed.
func validateInitContainer(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
		return errs
	}
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
			errs = append(errs, field.Forbidden(path.Child(forbidden.name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	return errs
}

// Image judges the name of an image; what it refers to is found when it is pulled.
func Image(image string, path *field.Path) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if strings.TrimSpace(image) != image {
		return field.ErrorList{field.Invalid(path, image, "must not have leading or trailing whitespace")}
	}
	return nil
}

func validateContainerPorts(ports []corev1.ContainerPort, hostNetwork bool, path *field.Path) field.ErrorList {
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
		if p.HostIP != "" {
			errs = append(errs, rule.IP(p.HostIP, at.Child("hostIP"))...)
		}
		if hostNetwork && p.HostPort != 0 && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(at.Child("containerPort"), p.ContainerPort, "must match `hostPort` when `hostNetwork` is true"))
		}
		errs = append(errs, rule.Protocol(p.Protocol, at.Child("protocol"))...)
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
