package records

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
)

// underServices are the names below svc: NAMESPACE, SERVICE.NAMESPACE, ENDPOINT.SERVICE.NAMESPACE and _PORT._PROTOCOL.SERVICE.NAMESPACE.
func (z Zone) underServices(name string, labels []string, qtype uint16, view View) Answer {
	switch len(labels) {
	case 0:
		return Answer{Exists: true}
	case 1:
		return Answer{Exists: view.HasServices(labels[0])}
	}
	namespace, service := labels[len(labels)-1], labels[len(labels)-2]
	s := view.Service(namespace, service)
	if s == nil {
		return Answer{}
	}
	q := question{z, name, qtype, view, s}
	switch rest := labels[:len(labels)-2]; {
	case len(rest) == 0:
		return q.service()
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return Answer{}
	case len(rest) == 1 && strings.HasPrefix(rest[0], "_"):
		return Answer{Exists: slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return protocolLabel(p.Protocol) == rest[0] })}
	case len(rest) == 1 && isHeadless(s):
		return q.endpoint(rest[0])
	case len(rest) == 2:
		return q.ports(rest[0], rest[1])
	}
	return Answer{}
}

// question is one about a Service.
type question struct {
	Zone
	name  string
	qtype uint16
	view  View
	is    *corev1.Service
}

// service answers for the Service's own name.
func (q question) service() Answer {
	s := q.is
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return q.alias()
	}
	if q.qtype == dns.TypeSRV {
		return q.ports("", "")
	}
	if isHeadless(s) {
		ready := q.ready()
		// A Service without ready endpoints exists all the same.
		return Answer{Exists: true, Records: addressRecords(q.name, podTTL, distinct(ready), q.qtype)}
	}
	return Answer{Exists: true, Records: addressRecords(q.name, serviceTTL, clusterAddresses(s), q.qtype)}
}

func (q question) alias() Answer {
	target := dns.Fqdn(strings.ToLower(q.is.Spec.ExternalName))
	if _, ok := dns.IsDomainName(target); !ok || target == "." {
		return Answer{Exists: true}
	}
	record := &dns.CNAME{Hdr: header(q.name, dns.TypeCNAME, serviceTTL), Target: target}
	return Answer{Exists: true, Records: []dns.RR{record}, Alias: target}
}

// ports are the SRV records of a port, "_http" and "_tcp", or, with "", of all.
func (q question) ports(port, protocol string) Answer {
	c := collected{seen: map[string]bool{}}
	c.Exists = port == ""
	for _, p := range q.is.Spec.Ports {
		if port != "" && ("_"+strings.ToLower(p.Name) != port || protocolLabel(p.Protocol) != protocol) {
			continue
		}
		c.Exists = true
		switch {
		case q.qtype != dns.TypeSRV:
		case isHeadless(q.is):
			q.addEndpoints(&c, p)
		default:
			c.add(q.name, q.serviceName(), uint16(p.Port), serviceTTL, clusterAddresses(q.is))
		}
	}
	return c.Answer
}

// serviceName is the name of the Service, however it was asked for.
func (q question) serviceName() string {
	return q.is.Name + "." + q.is.Namespace + ".svc." + q.Domain
}

// collected is an answer of SRV records, each once, and the addresses of their targets.
type collected struct {
	Answer
	seen map[string]bool
}

func (c *collected) add(name, target string, port uint16, ttl uint32, addresses []netip.Addr) {
	if key := target + ":" + strconv.Itoa(int(port)); !c.seen[key] {
		c.seen[key] = true
		c.Records = append(c.Records, &dns.SRV{Hdr: header(name, dns.TypeSRV, ttl), Priority: 0, Weight: 100, Port: port, Target: target})
	}
	for _, address := range addresses {
		if key := target + "/" + address.String(); !c.seen[key] {
			c.seen[key] = true
			c.Additional = append(c.Additional, addressRecords(target, ttl, []netip.Addr{address}, familyOf(address))...)
		}
	}
}

func isHeadless(s *corev1.Service) bool {
	return s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.Type != corev1.ServiceTypeExternalName
}

func protocolLabel(p corev1.Protocol) string {
	if p == "" {
		p = corev1.ProtocolTCP
	}
	return "_" + strings.ToLower(string(p))
}

// clusterAddresses are those of all families.
func clusterAddresses(s *corev1.Service) []netip.Addr {
	texts := s.Spec.ClusterIPs
	if len(texts) == 0 {
		texts = []string{s.Spec.ClusterIP}
	}
	var all []netip.Addr
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, address)
		}
	}
	return all
}
