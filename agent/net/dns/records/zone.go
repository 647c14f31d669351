package records

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Version is that of the specification, which dns-version says.
const Version = "1.1.0"

// Times to live, in seconds: addresses of a cluster stay, those of pods and what does not exist may change at once.
const (
	serviceTTL = 30
	podTTL     = 5
	soaTTL     = 5
)

// View is what is known of the cluster. What it returns is shared and must not be changed.
type View interface {
	// Service is nil if there is none.
	Service(namespace, name string) *corev1.Service
	// Slices are those of a Service.
	Slices(namespace, name string) []*discoveryv1.EndpointSlice
	// HasServices reports whether a namespace has any Service.
	HasServices(namespace string) bool
	// ServicesAt are those with a cluster address.
	ServicesAt(address netip.Addr) []*corev1.Service
	// SlicesAt are those with an endpoint at an address.
	SlicesAt(address netip.Addr) []*discoveryv1.EndpointSlice
}

// Zone is the domain of a cluster.
type Zone struct {
	// Domain is in lower case and fully qualified, "cluster.local.".
	Domain string
	// Address is the server's.
	Address netip.Addr
	// Serial is that of the SOA.
	Serial uint32
}

// Answer is what a name has. Without records the name may exist: NODATA, otherwise NXDOMAIN.
type Answer struct {
	Records []dns.RR
	// Additional are the addresses of what Records name.
	Additional []dns.RR
	Exists     bool
	// Alias is where an ExternalName leads, fully qualified; its CNAME is the last of Records.
	Alias string
}

// Answer says what the zone has for a question; ok: the question is the zone's, even if there is nothing. name may have any case.
func (z Zone) Answer(name string, qtype uint16, view View) (a Answer, ok bool) {
	lower := strings.ToLower(name)
	if address, is := reversed(lower); is {
		return z.reverse(name, address, qtype, view)
	}
	if lower == z.Domain {
		return z.apex(name, qtype), true
	}
	below, ok := strings.CutSuffix(lower, "."+z.Domain)
	if !ok {
		return Answer{}, false
	}
	labels := strings.Split(below, ".")
	last := len(labels) - 1
	switch labels[last] {
	case "svc":
		return z.underServices(name, labels[:last], qtype, view), true
	case "pod":
		return z.underPods(name, labels[:last], qtype, view), true
	}
	return z.ofServer(name, below, qtype), true
}

// SOA stands in answers without records.
func (z Zone) SOA() dns.RR {
	return &dns.SOA{
		Hdr: header(z.Domain, dns.TypeSOA, soaTTL), Ns: "ns.dns." + z.Domain, Mbox: "hostmaster." + z.Domain, Serial: z.Serial,
		Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: soaTTL,
	}
}

func (z Zone) apex(name string, qtype uint16) Answer {
	a := Answer{Exists: true}
	switch qtype {
	case dns.TypeSOA:
		a.Records = []dns.RR{z.SOA()}
	case dns.TypeNS:
		server := "ns.dns." + z.Domain
		a.Records = []dns.RR{&dns.NS{Hdr: header(name, dns.TypeNS, serviceTTL), Ns: server}}
		a.Additional = addressRecords(server, serviceTTL, []netip.Addr{z.Address}, familyOf(z.Address))
	}
	return a
}

// ofServer are the few names that are about the server.
func (z Zone) ofServer(name, below string, qtype uint16) Answer {
	switch below {
	case "dns-version":
		a := Answer{Exists: true}
		if qtype == dns.TypeTXT {
			a.Records = []dns.RR{&dns.TXT{Hdr: header(name, dns.TypeTXT, serviceTTL), Txt: []string{Version}}}
		}
		return a
	case "ns.dns":
		return Answer{Exists: true, Records: addressRecords(name, serviceTTL, []netip.Addr{z.Address}, qtype)}
	case "dns":
		return Answer{Exists: true}
	}
	return Answer{}
}

// underPods are the names of addresses: 10-42-0-3.NAMESPACE.pod. Any address has one, as CoreDNS has it by default.
func (z Zone) underPods(name string, labels []string, qtype uint16, view View) Answer {
	switch len(labels) {
	case 0:
		return Answer{Exists: true}
	case 1:
		return Answer{Exists: view.HasServices(labels[0])}
	case 2:
		if address, ok := undashed(labels[0]); ok {
			return Answer{Exists: true, Records: addressRecords(name, podTTL, []netip.Addr{address}, qtype)}
		}
	}
	return Answer{}
}

func header(name string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

// addressRecords are the A or AAAA records that are asked for.
func addressRecords(name string, ttl uint32, addresses []netip.Addr, qtype uint16) []dns.RR {
	var all []dns.RR
	for _, address := range addresses {
		switch {
		case qtype == dns.TypeA && address.Is4():
			all = append(all, &dns.A{Hdr: header(name, dns.TypeA, ttl), A: address.AsSlice()})
		case qtype == dns.TypeAAAA && address.Is6():
			all = append(all, &dns.AAAA{Hdr: header(name, dns.TypeAAAA, ttl), AAAA: address.AsSlice()})
		}
	}
	return all
}

func familyOf(address netip.Addr) uint16 {
	if address.Is6() {
		return dns.TypeAAAA
	}
	return dns.TypeA
}
