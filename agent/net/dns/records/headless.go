package records

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoint is a ready one of a headless Service: label is its name below the Service's.
type endpoint struct {
	label   string
	address netip.Addr
	ports   []discoveryv1.EndpointPort
}

// ready are those that may be named. Of Services that publish others too the slices say that they are ready.
func (q question) ready() []endpoint {
	var all []endpoint
	for _, slice := range q.view.Slices(q.is.Namespace, q.is.Name) {
		for i := range slice.Endpoints {
			all = append(all, namedBy(slice, &slice.Endpoints[i])...)
		}
	}
	return all
}

func namedBy(slice *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint) []endpoint {
	if slice.AddressType == discoveryv1.AddressTypeFQDN || e.Conditions.Ready != nil && !*e.Conditions.Ready {
		return nil
	}
	var all []endpoint
	for _, text := range e.Addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		all = append(all, endpoint{labelOf(e, address), address, slice.Ports})
	}
	return all
}

// labelOf is the pod's hostname, if it has one below the Service, or made of its address.
func labelOf(e *discoveryv1.Endpoint, address netip.Addr) string {
	if e.Hostname != nil && *e.Hostname != "" {
		return strings.ToLower(*e.Hostname)
	}
	return dashed(address)
}

func distinct(all []endpoint) []netip.Addr {
	addresses := make([]netip.Addr, 0, len(all))
	for _, e := range all {
		addresses = append(addresses, e.address)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}

// endpoint answers for one endpoint's name. Several may have one: a pod that is replaced, and both families.
func (q question) endpoint(label string) Answer {
	named := slices.DeleteFunc(q.ready(), func(e endpoint) bool { return e.label != label })
	return Answer{Exists: len(named) > 0, Records: addressRecords(q.name, podTTL, distinct(named), q.qtype)}
}

// addEndpoints adds an SRV record of each endpoint: with its own port, which may be another than the Service's.
func (q question) addEndpoints(c *collected, port corev1.ServicePort) {
	for _, e := range q.ready() {
		for _, p := range e.ports {
			if p.Port == nil || nameOf(p) != port.Name || protocolOf(p) != protocolLabel(port.Protocol) {
				continue
			}
			c.add(q.name, e.label+"."+q.serviceName(), uint16(*p.Port), podTTL, []netip.Addr{e.address})
		}
	}
}

func nameOf(p discoveryv1.EndpointPort) string {
	if p.Name == nil {
		return ""
	}
	return *p.Name
}

func protocolOf(p discoveryv1.EndpointPort) string {
	if p.Protocol == nil {
		return protocolLabel("")
	}
	return protocolLabel(*p.Protocol)
}

// reverse are the names of addresses: of Services, and of endpoints with a hostname. Others are not the zone's.
func (z Zone) reverse(name string, address netip.Addr, qtype uint16, view View) (Answer, bool) {
	var targets []string
	for _, s := range view.ServicesAt(address) {
		targets = append(targets, s.Name+"."+s.Namespace+".svc."+z.Domain)
	}
	for _, slice := range view.SlicesAt(address) {
		service := slice.Labels[discoveryv1.LabelServiceName]
		if s := view.Service(slice.Namespace, service); s == nil || !isHeadless(s) {
			continue
		}
		for i := range slice.Endpoints {
			for _, e := range namedBy(slice, &slice.Endpoints[i]) {
				if e.address == address && slice.Endpoints[i].Hostname != nil {
					targets = append(targets, e.label+"."+service+"."+slice.Namespace+".svc."+z.Domain)
				}
			}
		}
	}
	slices.Sort(targets)
	a := Answer{Exists: len(targets) > 0}
	for _, target := range slices.Compact(targets) {
		if qtype == dns.TypePTR {
			a.Records = append(a.Records, &dns.PTR{Hdr: header(name, dns.TypePTR, podTTL), Ptr: target})
		}
	}
	return a, a.Exists
}
