package podwarnings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// port is one of a container, and where it stands.
type port struct {
	corev1.ContainerPort
	at *field.Path
}

// ports are those of all containers of a pod.
func ports(spec *corev1.PodSpec, at *field.Path) (all []port) {
	for c, path := range containers(spec, at) {
		for i, p := range c.Ports {
			all = append(all, port{p, path.Child("ports").Index(i)})
		}
	}
	return all
}

// portWarnings find ports that are named twice in a pod, by number, by the port of the node, and by name.
func portWarnings(spec *corev1.PodSpec, at *field.Path) []string {
	all := ports(spec, at)
	return append(numberWarnings(all), nameWarnings(all)...)
}

func numberWarnings(all []port) (warnings []string) {
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	others := map[key][]port{} // comparedMax of each
	for _, p := range all {
		if p.HostIP != "" && p.HostPort == 0 {
			warnings = append(warnings, fmt.Sprintf("%s: hostIP set without hostPort: %+v", p.at, p.ContainerPort))
		}
		k := key{p.ContainerPort.ContainerPort, p.Protocol}
		for _, other := range others[k] {
			if how := p.meets(other); how != "" && len(warnings) < warningsMax {
				warnings = append(warnings, fmt.Sprintf("%s: %s port definition with %s", p.at, how, other.at))
			}
		}
		if len(others[k]) < comparedMax {
			others[k] = append(others[k], p)
		}
	}
	return warnings
}

func nameWarnings(all []port) (warnings []string) {
	first := map[string]*field.Path{}
	for _, p := range all {
		if other, found := first[p.Name]; found {
			warnings = append(warnings, fmt.Sprintf("%s: duplicate port name %q with %s, services and probes that select ports by name will use %s",
				p.at, p.Name, other, other))
		} else if p.Name != "" {
			first[p.Name] = p.at
		}
	}
	return warnings
}

// meets says what two ports of one number and protocol are to each other: "" if they are different ones of the node.
func (p port) meets(other port) string {
	switch {
	case p.HostIP == other.HostIP && p.HostPort == other.HostPort:
		return "duplicate"
	case p.HostPort == 0 || other.HostPort == 0:
		return "overlapping"
	case p.HostPort == other.HostPort && (p.HostIP == "") != (other.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}
