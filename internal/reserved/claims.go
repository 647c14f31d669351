package reserved

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Claim is one port of one address that an object claims.
type Claim struct {
	Path *field.Path
	// Value is the field's, for messages.
	Value any
	// Address is unspecified for all addresses of all machines.
	Address netip.Addr
	Port    Port
}

// ID is the same for claims of the same.
type ID struct {
	Address netip.Addr
	Port    Port
}

// ID is what the claim is of, wherever it stands.
func (c Claim) ID() ID { return ID{normal(c.Address), c.Port} }

// everyAddress stands for all of a machine.
var everyAddress = netip.IPv4Unspecified()

// OfService are what a Service claims of others than the cluster's own range: external addresses, those of load balancers, node ports.
func OfService(s *corev1.Service) (all []Claim) {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	spec := field.NewPath("spec")
	for i, ip := range s.Spec.ExternalIPs {
		all = append(all, ofAddress(s, ip, spec.Child("externalIPs").Index(i))...)
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		all = append(all, ofAddress(s, s.Spec.LoadBalancerIP, spec.Child("loadBalancerIP"))...)
		for i, ingress := range s.Status.LoadBalancer.Ingress {
			all = append(all, ofAddress(s, ingress.IP, field.NewPath("status", "loadBalancer", "ingress").Index(i).Child("ip"))...)
		}
	}
	for i, p := range s.Spec.Ports {
		all = append(all, ofNodePort(p.NodePort, p.Protocol, spec.Child("ports").Index(i).Child("nodePort"))...)
	}
	return append(all, ofNodePort(s.Spec.HealthCheckNodePort, corev1.ProtocolTCP, spec.Child("healthCheckNodePort"))...)
}

// IsNodePortOf tells whether a port is one of a Service's own node ports: at the addresses of nodes it is asked there anyway.
func (h Holding) IsNodePortOf(s *corev1.Service) bool {
	return h.Use == NodePort && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return Port{p.Protocol, p.NodePort} == h.Port
	})
}

func ofNodePort(number int32, protocol corev1.Protocol, path *field.Path) []Claim {
	if number == 0 {
		return nil
	}
	return []Claim{{path, number, everyAddress, Port{protocol, number}}}
}

// ofAddress are all ports of a Service at an address; none if the text is no address, which others say.
func ofAddress(s *corev1.Service, text string, path *field.Path) (all []Claim) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return nil
	}
	for _, p := range s.Spec.Ports {
		all = append(all, Claim{path, text, ip, Port{p.Protocol, p.Port}})
	}
	return all
}

// OfPod are the host ports of a pod that has a network of its own: what is sent to them is led to the pod. Programs of a pod with the
// machine's network ask the machine itself for ports.
func OfPod(pod *corev1.Pod) (all []Claim) {
	if pod.Spec.HostNetwork {
		return nil
	}
	look := func(list []corev1.Container, path *field.Path) {
		for i := range list {
			for j, p := range list[i].Ports {
				if p.HostPort != 0 {
					at := path.Index(i).Child("ports").Index(j).Child("hostPort")
					all = append(all, Claim{at, p.HostPort, everyAddress, Port{p.Protocol, p.HostPort}})
				}
			}
		}
	}
	look(pod.Spec.InitContainers, field.NewPath("spec", "initContainers"))
	look(pod.Spec.Containers, field.NewPath("spec", "containers"))
	return all
}

// PortsOf are the ports that a pod has of its machine: host ports, which a pod with the machine's network has for each port that it
// declares. One at a loopback address is nobody's from outside.
func PortsOf(pod *corev1.Pod) (all []Port) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				if at, err := netip.ParseAddr(p.HostIP); p.HostPort != 0 && (err != nil || !at.IsLoopback()) {
					all = append(all, Port{cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort})
				}
			}
		}
	}
	return all
}

// OfSlice are the endpoints of a slice, each with each port.
func OfSlice(slice *discoveryv1.EndpointSlice) (all []Claim) {
	for i, e := range slice.Endpoints {
		for j, text := range e.Addresses {
			path := field.NewPath("endpoints").Index(i).Child("addresses").Index(j)
			for _, p := range slice.Ports {
				all = append(all, ofEndpoint(text, Port{ptr.Deref(p.Protocol, corev1.ProtocolTCP), ptr.Deref(p.Port, 0)}, path)...)
			}
		}
	}
	return all
}

// OfEndpoints are those of an Endpoints, ready or not.
func OfEndpoints(endpoints *corev1.Endpoints) (all []Claim) {
	for i, subset := range endpoints.Subsets {
		path := field.NewPath("subsets").Index(i)
		look := func(list []corev1.EndpointAddress, path *field.Path) {
			for j, a := range list {
				for _, p := range subset.Ports {
					all = append(all, ofEndpoint(a.IP, Port{p.Protocol, p.Port}, path.Index(j).Child("ip"))...)
				}
			}
		}
		look(subset.Addresses, path.Child("addresses"))
		look(subset.NotReadyAddresses, path.Child("notReadyAddresses"))
	}
	return all
}

func ofEndpoint(text string, port Port, path *field.Path) []Claim {
	ip, err := netip.ParseAddr(text)
	if err != nil || port.Number == 0 {
		return nil
	}
	return []Claim{{path, text, ip, port}}
}
