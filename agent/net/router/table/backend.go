package table

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Protocol is what a backend speaks.
type Protocol string

// The protocols of backends.
const (
	HTTP Protocol = "HTTP"
	// H2C is HTTP/2 without TLS, by which gRPC is spoken.
	H2C Protocol = "H2C"
	// HTTPS is encrypted; pods have no certificates that could be checked for an address, so none is.
	HTTPS Protocol = "HTTPS"
)

// Backend is a port of a Service. Its endpoints may be none.
type Backend struct {
	Namespace, Service, Port string
	Protocol                 Protocol
	Endpoints                []netip.AddrPort
	// TLS, if not nil, encrypts connections and checks who answers. Refused: that is wanted, but not known how, so nobody is asked.
	TLS     *TLS
	Refused bool
	// Missing says why there can be no endpoints; "" if there only are none at the moment.
	Missing string
}

type backendKey struct {
	namespace, service, port string
	protocol                 Protocol
}

// backend is that of a rule; the rules of a table share those that are the same.
func (b *builder) backend(i *networkingv1.Ingress, ref *networkingv1.IngressBackend, options Options) *Backend {
	if ref.Service == nil {
		const text = "backends that are no Services are not supported"
		b.problem(i, "UnsupportedBackend", text)
		return &Backend{Namespace: i.Namespace, Missing: text}
	}
	port := ref.Service.Port.Name
	if port == "" {
		port = fmt.Sprint(ref.Service.Port.Number)
	}
	key := backendKey{i.Namespace, ref.Service.Name, port, options.Protocol}
	made := b.backends[key]
	if made == nil {
		made = NewBackend(b.Service(key.namespace, key.service), key.namespace, key.service, ref.Service.Port, key.protocol, b.Slices)
		b.backends[key] = made
	}
	if made.Missing != "" {
		b.problem(i, "BackendMissing", "Service %s: %s", key.service, made.Missing)
	}
	return made
}

// NewBackend is a port of the Service, which is nil if there is none of that name; said is what the backend speaks, if not empty.
func NewBackend(
	service *corev1.Service, namespace, name string, ref networkingv1.ServiceBackendPort, said Protocol,
	slicesOf func(namespace, service string) []*discoveryv1.EndpointSlice,
) *Backend {
	made := &Backend{Namespace: namespace, Service: name, Port: ref.Name, Protocol: said}
	if ref.Name == "" {
		made.Port = fmt.Sprint(ref.Number)
	}
	switch {
	case service == nil:
		made.Missing = "it does not exist"
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		made.Missing = "it is of type ExternalName, to which nothing is routed"
	default:
		port := portOf(service, ref)
		if port == nil {
			made.Missing = "it has no port " + made.Port
			return made
		}
		made.Protocol = protocolOf(said, port)
		made.Endpoints = endpoints(slicesOf(namespace, name), port.Name, service.Spec.IPFamilies)
	}
	return made
}

func portOf(service *corev1.Service, ref networkingv1.ServiceBackendPort) *corev1.ServicePort {
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		if p.Protocol != corev1.ProtocolTCP && p.Protocol != "" {
			continue
		}
		if ref.Name != "" && p.Name == ref.Name || ref.Name == "" && p.Port == ref.Number {
			return p
		}
	}
	return nil
}

// protocolOf is what the Ingress says, or what the port's appProtocol does (KEP-3726).
func protocolOf(said Protocol, port *corev1.ServicePort) Protocol {
	if said != "" {
		return said
	}
	if port.AppProtocol != nil {
		switch *port.AppProtocol {
		case "kubernetes.io/h2c", "grpc":
			return H2C
		case "https":
			return HTTPS
		}
	}
	return HTTP
}

// endpoints are those of the Service's first family: a pod with two addresses is one endpoint. Where that has none, those of the
// other count.
func endpoints(all []*discoveryv1.EndpointSlice, portName string, families []corev1.IPFamily) []netip.AddrPort {
	if len(families) < 2 {
		return endpointsIn(all, portName)
	}
	for _, family := range families {
		isOther := func(s *discoveryv1.EndpointSlice) bool { return s.AddressType != discoveryv1.AddressType(family) }
		if found := endpointsIn(slices.DeleteFunc(slices.Clone(all), isOther), portName); len(found) > 0 {
			return found
		}
	}
	return nil
}

// endpointsIn are those that are ready; if there are none, those that still serve while they end (KEP-1669).
func endpointsIn(all []*discoveryv1.EndpointSlice, portName string) []netip.AddrPort {
	var ready, ending []netip.AddrPort
	for _, s := range all {
		port := slicePort(s, portName)
		if port == 0 || s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			at, ok := address(e, port)
			switch {
			case !ok:
			case e.Conditions.Ready == nil || *e.Conditions.Ready:
				ready = append(ready, at)
			case isTrue(e.Conditions.Serving) && isTrue(e.Conditions.Terminating):
				ending = append(ending, at)
			}
		}
	}
	if len(ready) == 0 {
		return ending
	}
	return ready
}

func isTrue(b *bool) bool { return b != nil && *b }

// address is an endpoint's; one in whose name nobody else may be reached is none (CVE-2020-8554's cousins: loopback, link-local).
func address(e *discoveryv1.Endpoint, port uint16) (netip.AddrPort, bool) {
	if len(e.Addresses) == 0 {
		return netip.AddrPort{}, false
	}
	at, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || at.IsLoopback() || at.IsLinkLocalUnicast() || at.IsMulticast() || at.IsUnspecified() {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(at, port), true
}

func slicePort(s *discoveryv1.EndpointSlice, name string) uint16 {
	for _, p := range s.Ports {
		named := p.Name != nil && *p.Name == name || p.Name == nil && name == ""
		if named && p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			return uint16(*p.Port)
		}
	}
	return 0
}
