package hostfirewall

import (
	"cmp"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/agent/net/dns"
	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Annotation says on a Node whether it has a firewall: On or Off.
const (
	Annotation = "setpoint.io/host-firewall"
	On, Off    = "on", "off"
)

// Port is one of a node's. Protocol is IANA's number.
type Port struct {
	Protocol byte
	Number   uint16
}

func (p Port) compare(other Port) int {
	return cmp.Or(cmp.Compare(p.Protocol, other.Protocol), cmp.Compare(p.Number, other.Number))
}

// TCP is a port of that protocol.
func TCP(number int) Port { return Port{unix.IPPROTO_TCP, uint16(number)} }

// UDP is a port of that protocol.
func UDP(number int) Port { return Port{unix.IPPROTO_UDP, uint16(number)} }

// AgentPorts are those of an agent that pods reach: its own, those of names if it serves them, and those of Ingresses, 0 being none.
func AgentPorts(own int, names bool, ingress ...int) []Port {
	all := []Port{TCP(own)}
	if at := dns.DefaultPorts; names {
		all = append(all, UDP(int(at.DNS)), TCP(int(at.DNS)), TCP(int(at.Metrics)))
	}
	for _, number := range ingress {
		if number != 0 {
			all = append(all, TCP(number))
		}
	}
	return all
}

// World is what decides which ports of a node are open.
type World struct {
	// Own are the node's addresses.
	Own []netip.Addr
	// Listening are the ports of its agent.
	Listening []Port
	// Pods are those of the node.
	Pods     []*corev1.Pod
	Slices   []*discoveryv1.EndpointSlice
	Services []*corev1.Service
}

// Ports are those that pods reach, in order and each once.
func (w World) Ports() []Port {
	all := slices.Clone(w.Listening)
	for _, pod := range w.Pods {
		all = append(all, declared(pod)...)
	}
	own := map[string]bool{}
	for _, address := range w.Own {
		own[address.String()] = true
	}
	for _, slice := range w.Slices {
		if isAt(slice, own) {
			all = append(all, endpointPorts(slice)...)
		}
	}
	for _, service := range w.Services {
		if port := service.Spec.HealthCheckNodePort; port != 0 {
			all = append(all, TCP(int(port)))
		}
	}
	slices.SortFunc(all, Port.compare)
	return slices.Compact(all)
}

// declared are the ports of a pod that has the machine's network.
func declared(pod *corev1.Pod) (all []Port) {
	if !pod.Spec.HostNetwork {
		return nil
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				all = append(all, PortOf(p.Protocol, uint16(p.ContainerPort)))
			}
		}
	}
	return all
}

// isAt reports whether an endpoint of the slice is one of these addresses.
func isAt(slice *discoveryv1.EndpointSlice, own map[string]bool) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		return slices.ContainsFunc(e.Addresses, func(address string) bool { return own[address] })
	})
}

func endpointPorts(slice *discoveryv1.EndpointSlice) (all []Port) {
	for _, p := range slice.Ports {
		if p.Port == nil {
			continue
		}
		all = append(all, PortOf(ptr.Deref(p.Protocol, ""), uint16(*p.Port)))
	}
	return all
}

// PortOf is the port of that number and protocol, TCP if none is named.
func PortOf(p corev1.Protocol, number uint16) Port {
	return Port{cmp.Or(ipfamily.Protocols[p], unix.IPPROTO_TCP), number}
}
