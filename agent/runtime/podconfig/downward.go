package podconfig

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/fieldpath"
)

// Field is the value of a fieldRef, for environments and downward API volumes.
func Field(pod *corev1.Pod, path string, podIPs, hostIPs []string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "spec.hostname":
		return Hostname(pod), nil
	case "status.hostIP":
		return first(hostIPs), nil
	case "status.hostIPs":
		return strings.Join(hostIPs, ","), nil
	case "status.podIP":
		return first(podIPs), nil
	case "status.podIPs":
		return strings.Join(podIPs, ","), nil
	}
	v, err := fieldpath.ExtractFieldPathAsString(pod, path)
	if err != nil {
		return "", &ConfigError{Message: err.Error()}
	}
	return v, nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// Resource is the value of a resourceFieldRef. A limit the container does not
// have is what the node can give.
func Resource(pod *corev1.Pod, c *corev1.Container, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	if ref.ContainerName != "" {
		if c = findContainer(pod, ref.ContainerName); c == nil {
			return "", &ConfigError{Message: fmt.Sprintf("container %s not found", ref.ContainerName)}
		}
	}
	kind, name, ok := strings.Cut(ref.Resource, ".")
	if !ok || c == nil {
		return "", &ConfigError{Message: fmt.Sprintf("unsupported container resource : %v", ref.Resource)}
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	quantity := c.Resources.Requests[corev1.ResourceName(name)]
	if kind == "limits" {
		limit, set := c.Resources.Limits[corev1.ResourceName(name)]
		if !set || limit.IsZero() {
			limit = allocatable[corev1.ResourceName(name)]
		}
		quantity = limit
	}
	return strconv.FormatInt(divideUp(corev1.ResourceName(name), quantity, divisor), 10), nil
}

// divideUp rounds up, cpu in thousandths.
func divideUp(name corev1.ResourceName, q, divisor resource.Quantity) int64 {
	a, b := q.Value(), divisor.Value()
	if name == corev1.ResourceCPU {
		a, b = q.MilliValue(), divisor.MilliValue()
	}
	if b == 0 {
		return 0
	}
	return (a + b - 1) / b
}

func findContainer(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

// Hostname is the name the pod's processes see.
func Hostname(pod *corev1.Pod) string {
	name := pod.Name
	if pod.Spec.Hostname != "" {
		name = pod.Spec.Hostname
	}
	if o := pod.Spec.HostnameOverride; o != nil {
		name = *o
	}
	const hostnameMax = 63
	if len(name) > hostnameMax {
		name = strings.TrimRight(name[:hostnameMax], "-.")
	}
	return name
}

// hostnameBytesMax is the kernel's.
const hostnameBytesMax = 64

// hostname is the name the sandbox gets: Hostname, or with setHostnameAsFQDN the whole name, which must fit.
func hostname(pod *corev1.Pod, domain string) (string, error) {
	name := Hostname(pod)
	if pod.Spec.HostNetwork {
		return "", nil
	}
	if !isTrue(pod.Spec.SetHostnameAsFQDN) || pod.Spec.Subdomain == "" || pod.Spec.HostnameOverride != nil {
		return name, nil
	}
	full := strings.Join([]string{name, pod.Spec.Subdomain, pod.Namespace, "svc", domain}, ".")
	if len(full) > hostnameBytesMax {
		return "", fmt.Errorf(
			"failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)",
			full,
			hostnameBytesMax,
			len(full),
		)
	}
	return full, nil
}

// requests is what the scheduler counts for the whole pod.
func requests(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}
