package records

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is a View of a few objects.
type world struct {
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
}

func (w *world) Service(namespace, name string) *corev1.Service {
	for _, s := range w.services {
		if s.Namespace == namespace && s.Name == name {
			return s
		}
	}
	return nil
}

func (w *world) Slices(namespace, name string) (all []*discoveryv1.EndpointSlice) {
	for _, s := range w.slices {
		if s.Namespace == namespace && s.Labels[discoveryv1.LabelServiceName] == name {
			all = append(all, s)
		}
	}
	return all
}

func (w *world) HasServices(namespace string) bool {
	return slices.ContainsFunc(w.services, func(s *corev1.Service) bool { return s.Namespace == namespace })
}

func (w *world) ServicesAt(address netip.Addr) (all []*corev1.Service) {
	for _, s := range w.services {
		if slices.Contains(clusterAddresses(s), address) {
			all = append(all, s)
		}
	}
	return all
}

func (w *world) SlicesAt(netip.Addr) []*discoveryv1.EndpointSlice { return w.slices }

func service(name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: spec}
}

func slice(service string, kind discoveryv1.AddressType, ports []discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: kind, Ports: ports, Endpoints: endpoints,
	}
}

func endpointAt(address, hostname string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func port(name string, number int32) []discoveryv1.EndpointPort {
	tcp := corev1.ProtocolTCP
	return []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: &tcp}}
}

// cluster has a Service of each sort.
func cluster() *world {
	return &world{
		services: []*corev1.Service{
			service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9", "fd00::9"},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}}),
			service("db", corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Name: "sql", Port: 5432}}}),
			service("empty", corev1.ServiceSpec{ClusterIP: "None"}),
			service("out", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "Example.com"}),
			service("bad", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: strings.Repeat("a", 64) + ".com"}),
		},
		slices: []*discoveryv1.EndpointSlice{
			slice("db", discoveryv1.AddressTypeIPv4, port("sql", 15432),
				endpointAt("10.42.0.4", "db-1", true), endpointAt("10.42.0.3", "DB-0", true), endpointAt("10.42.0.5", "", true), endpointAt("10.42.0.6", "db-2", false)),
			slice("db", discoveryv1.AddressTypeIPv4, port("sql", 15432), endpointAt("10.42.0.4", "db-1", true)),
			slice("db", discoveryv1.AddressTypeIPv6, port("sql", 15433), endpointAt("fd00::3", "db-0", true)),
			slice("db", discoveryv1.AddressTypeFQDN, port("sql", 1), endpointAt("elsewhere.example", "", true)),
			slice("web", discoveryv1.AddressTypeIPv4, port("http", 8080), endpointAt("10.42.0.9", "web-0", true)),
			slice("gone", discoveryv1.AddressTypeIPv4, port("http", 8080), endpointAt("10.42.0.10", "gone-0", true)),
		},
	}
}

var zone = Zone{Domain: "cluster.local.", Address: netip.MustParseAddr("10.96.0.10"), Serial: 1}

func texts(records []dns.RR) (all []string) {
	for _, r := range records {
		_, rest, _ := strings.Cut(r.String(), "\tIN\t")
		all = append(all, strings.ReplaceAll(rest, "\t", " "))
	}
	return all
}

const (
	nodata   = "NODATA"
	nxdomain = "NXDOMAIN"
	foreign  = "foreign"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		qtype uint16
		want  []string
	}{
		{"web.ns.svc.cluster.local.", dns.TypeA, []string{"A 10.96.0.9"}},
		{"WEB.ns.SVC.cluster.LOCAL.", dns.TypeA, []string{"A 10.96.0.9"}},
		{"web.ns.svc.cluster.local.", dns.TypeAAAA, []string{"AAAA fd00::9"}},
		{"web.ns.svc.cluster.local.", dns.TypeMX, []string{nodata}},
		{"web.ns.svc.cluster.local.", dns.TypeSRV, []string{"SRV 0 100 80 web.ns.svc.cluster.local.", "SRV 0 100 53 web.ns.svc.cluster.local."}},
		{"_http._tcp.web.ns.svc.cluster.local.", dns.TypeSRV, []string{"SRV 0 100 80 web.ns.svc.cluster.local."}},
		{"_dns._udp.web.ns.svc.cluster.local.", dns.TypeSRV, []string{"SRV 0 100 53 web.ns.svc.cluster.local."}},
		{"_dns._tcp.web.ns.svc.cluster.local.", dns.TypeSRV, []string{nxdomain}},
		{"_http._tcp.web.ns.svc.cluster.local.", dns.TypeA, []string{nodata}},
		{"_tcp.web.ns.svc.cluster.local.", dns.TypeSRV, []string{nodata}},
		{"_sctp.web.ns.svc.cluster.local.", dns.TypeSRV, []string{nxdomain}},
		{"web-0.web.ns.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"db.ns.svc.cluster.local.", dns.TypeA, []string{"A 10.42.0.3", "A 10.42.0.4", "A 10.42.0.5"}},
		{"db.ns.svc.cluster.local.", dns.TypeAAAA, []string{"AAAA fd00::3"}},
		{"db-0.db.ns.svc.cluster.local.", dns.TypeA, []string{"A 10.42.0.3"}},
		{"db-0.db.ns.svc.cluster.local.", dns.TypeAAAA, []string{"AAAA fd00::3"}},
		{"db-1.db.ns.svc.cluster.local.", dns.TypeAAAA, []string{nodata}},
		{"db-2.db.ns.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"10-42-0-5.db.ns.svc.cluster.local.", dns.TypeA, []string{"A 10.42.0.5"}},
		{"_sql._tcp.db.ns.svc.cluster.local.", dns.TypeSRV, []string{"SRV 0 100 15432 db-1.db.ns.svc.cluster.local.",
			"SRV 0 100 15432 db-0.db.ns.svc.cluster.local.", "SRV 0 100 15432 10-42-0-5.db.ns.svc.cluster.local.", "SRV 0 100 15433 db-0.db.ns.svc.cluster.local."}},
		{"empty.ns.svc.cluster.local.", dns.TypeA, []string{nodata}},
		{"out.ns.svc.cluster.local.", dns.TypeA, []string{"CNAME example.com."}},
		{"out.ns.svc.cluster.local.", dns.TypeCNAME, []string{"CNAME example.com."}},
		{"x.out.ns.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"bad.ns.svc.cluster.local.", dns.TypeA, []string{nodata}},
		{"missing.ns.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"web.other.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"a.b.c.web.ns.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"ns.svc.cluster.local.", dns.TypeA, []string{nodata}},
		{"other.svc.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"svc.cluster.local.", dns.TypeA, []string{nodata}},
		{"cluster.local.", dns.TypeA, []string{nodata}},
		{"cluster.local.", dns.TypeNS, []string{"NS ns.dns.cluster.local."}},
		{"cluster.local.", dns.TypeSOA, []string{"SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5"}},
		{"ns.dns.cluster.local.", dns.TypeA, []string{"A 10.96.0.10"}},
		{"dns.cluster.local.", dns.TypeA, []string{nodata}},
		{"dns-version.cluster.local.", dns.TypeTXT, []string{`TXT "1.1.0"`}},
		{"dns-version.cluster.local.", dns.TypeA, []string{nodata}},
		{"kube.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"pod.cluster.local.", dns.TypeA, []string{nodata}},
		{"ns.pod.cluster.local.", dns.TypeA, []string{nodata}},
		{"10-42-0-3.ns.pod.cluster.local.", dns.TypeA, []string{"A 10.42.0.3"}},
		{"10-42-0-3.ns.pod.cluster.local.", dns.TypeAAAA, []string{nodata}},
		{"fd00--3.ns.pod.cluster.local.", dns.TypeAAAA, []string{"AAAA fd00::3"}},
		{"10-42-0-300.ns.pod.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"web.ns.pod.cluster.local.", dns.TypeA, []string{nxdomain}},
		{"9.0.96.10.in-addr.arpa.", dns.TypePTR, []string{"PTR web.ns.svc.cluster.local."}},
		{"9.0.96.10.in-addr.arpa.", dns.TypeA, []string{nodata}},
		{"9." + strings.Repeat("0.", 27) + "0.0.d.f.ip6.arpa.", dns.TypePTR, []string{"PTR web.ns.svc.cluster.local."}},
		{"3.0.42.10.in-addr.arpa.", dns.TypePTR, []string{"PTR db-0.db.ns.svc.cluster.local."}},
		{"5.0.42.10.in-addr.arpa.", dns.TypePTR, []string{foreign}},
		{"9.0.42.10.in-addr.arpa.", dns.TypePTR, []string{foreign}},
		{"10.0.42.10.in-addr.arpa.", dns.TypePTR, []string{foreign}},
		{"0.42.10.in-addr.arpa.", dns.TypePTR, []string{foreign}},
		{"example.com.", dns.TypeA, []string{foreign}},
		{"notcluster.local.", dns.TypeA, []string{foreign}},
		{".", dns.TypeNS, []string{foreign}},
	} {
		a, ours := zone.Answer(c.name, c.qtype, cluster())
		got := texts(a.Records)
		switch {
		case !ours:
			got = []string{foreign}
		case len(got) == 0 && a.Exists:
			got = []string{nodata}
		case len(got) == 0:
			got = []string{nxdomain}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s: %s", c.name, dns.Type(c.qtype), diff)
		}
	}
}

func TestAdditionalAddressesAndAliases(t *testing.T) {
	a, _ := zone.Answer("_sql._tcp.db.ns.svc.cluster.local.", dns.TypeSRV, cluster())
	want := []string{"A 10.42.0.4", "A 10.42.0.3", "A 10.42.0.5", "AAAA fd00::3"}
	if diff := cmp.Diff(want, texts(a.Additional), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if a, _ = zone.Answer("out.ns.svc.cluster.local.", dns.TypeA, cluster()); a.Alias != "example.com." {
		t.Errorf("alias %q", a.Alias)
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]Found{
		"web.ns.svc.cluster.local.":     {Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.9"), netip.MustParseAddr("fd00::9")}, Exists: true},
		"empty.ns.svc.cluster.local.":   {Exists: true},
		"missing.ns.svc.cluster.local.": {},
		"out.ns.svc.cluster.local.":     {Exists: true, Alias: "example.com."},
	} {
		got, ok := zone.Lookup(name, cluster())
		if !ok || got.Exists != want.Exists || got.Alias != want.Alias || !slices.Equal(got.Addresses, want.Addresses) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, want)
		}
	}
	if _, ok := zone.Lookup("example.com.", cluster()); ok {
		t.Error("a name of others is the zone's")
	}
}

// FuzzNames: any name gets an answer that can be sent, the same each time.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"web.ns.svc.cluster.local.", "_a._b.db.ns.svc.cluster.local.", "1.0.0.127.in-addr.arpa.", "a-b--c.ns.pod.cluster.local.", ".", ""} {
		f.Add(name, uint16(dns.TypeSRV))
	}
	view := cluster()
	f.Fuzz(func(t *testing.T, name string, qtype uint16) {
		if _, ok := dns.IsDomainName(name); !ok || !dns.IsFqdn(name) {
			return
		}
		a, ours := zone.Answer(name, qtype, view)
		again, _ := zone.Answer(name, qtype, view)
		if diff := cmp.Diff(texts(a.Records), texts(again.Records)); diff != "" {
			t.Error(diff)
		}
		if !ours && (a.Exists || len(a.Records) > 0) {
			t.Errorf("%q is not the zone's, and has %v", name, a)
		}
		m := &dns.Msg{Answer: a.Records, Extra: a.Additional}
		if _, err := m.Pack(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	})
}
