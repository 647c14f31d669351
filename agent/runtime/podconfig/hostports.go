package podconfig

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// HostPorts are the ports of containers that run beside each other and that have one of the machine's; in the host's network each
// port is the machine's.
func HostPorts(pod *corev1.Pod) iter.Seq[*corev1.ContainerPort] {
	return func(yield func(*corev1.ContainerPort) bool) {
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && !yieldPorts(c, yield) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yieldPorts(&pod.Spec.Containers[i], yield) {
				return
			}
		}
	}
}

func yieldPorts(c *corev1.Container, yield func(*corev1.ContainerPort) bool) (more bool) {
	for i := range c.Ports {
		if c.Ports[i].HostPort != 0 && !yield(&c.Ports[i]) {
			return false
		}
	}
	return true
}

func portMappings(pod *corev1.Pod) []*runtimeapi.PortMapping {
	if pod.Spec.HostNetwork {
		return nil
	}
	var out []*runtimeapi.PortMapping
	for p := range HostPorts(pod) {
		out = append(out, &runtimeapi.PortMapping{
			Protocol: protocols[p.Protocol], ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
		})
	}
	return out
}

// protocols: what names none means TCP, which is zero.
var protocols = map[corev1.Protocol]runtimeapi.Protocol{
	corev1.ProtocolUDP: runtimeapi.Protocol_UDP, corev1.ProtocolSCTP: runtimeapi.Protocol_SCTP,
}
