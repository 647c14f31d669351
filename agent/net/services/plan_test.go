package services

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

var compareAddresses = cmpopts.EquateComparable(netip.AddrPort{}, netip.Addr{}, netip.Prefix{})

// here is where the tests look from.
var here = Place{Node: "n1", Zone: "z1"}

type change = func(*corev1.Service)

func serviceOf(name, address string, changes ...change) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{}}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: address, ClusterIPs: []string{address},
		Ports: []corev1.ServicePort{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}}}}
	for _, c := range changes {
		c(s)
	}
	return s
}

func nodePort(s *corev1.Service) {
	s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
}

func balanced(s *corev1.Service) {
	s.Spec.Type, s.Spec.HealthCheckNodePort = corev1.ServiceTypeLoadBalancer, 30999
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
		{IP: "192.0.2.9"}, {IP: "192.0.2.10", IPMode: new(corev1.LoadBalancerIPModeProxy)}, {Hostname: "lb.example"},
	}
}
func externalIPs(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.5", "2001:db8::1"} }
func externalLocal(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}
func internalLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}
func udp(s *corev1.Service)  { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }
func stay(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }
func sources(ranges ...string) change {
	return func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = ranges }
}

func sliceOf(name, service string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("web"), Port: new(port), Protocol: new(corev1.ProtocolTCP)}},
	}
}

func ready(address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
}

func ending(address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}}
}

func unready(address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}}
}

func on(node string, e discoveryv1.Endpoint) discoveryv1.Endpoint {
	e.NodeName = &node
	return e
}

func hint(nodes, zones string, e discoveryv1.Endpoint) discoveryv1.Endpoint {
	e.Hints = &discoveryv1.EndpointHints{}
	for _, n := range strings.Fields(nodes) {
		e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: n})
	}
	for _, z := range strings.Fields(zones) {
		e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: z})
	}
	return e
}

func leads(address string, endpoints ...string) network.Service {
	s := network.Service{ServiceAddress: network.ServiceAddress{Protocol: 6, Address: netip.MustParseAddrPort(address)}}
	s.Endpoints = addressPorts(endpoints)
	return s
}

func addressPorts(texts []string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, e := range texts {
		all = append(all, netip.MustParseAddrPort(e))
	}
	return all
}

func with(s network.Service, changes ...func(*network.Service)) network.Service {
	for _, c := range changes {
		c(&s)
	}
	return s
}

func isExternal(s *network.Service) { s.External = true }
func isSilent(s *network.Service)   { s.Silent = true }
func outside(endpoints ...string) func(*network.Service) {
	return func(s *network.Service) { s.External, s.KeepsSource, s.Outside = true, true, addressPorts(endpoints) }
}

func pods(addresses ...string) func(*network.Service) {
	return func(s *network.Service) {
		for _, a := range addresses {
			s.Here = append(s.Here, netip.MustParseAddr(a))
		}
	}
}

func only(ranges ...string) func(*network.Service) {
	return func(s *network.Service) {
		for _, r := range ranges {
			s.Sources = append(s.Sources, netip.MustParsePrefix(r))
		}
	}
}

type sliceList = []*discoveryv1.EndpointSlice

func TestPlan(t *testing.T) {
	const cluster = "10.96.0.9"
	service := func(changes ...change) *corev1.Service { return serviceOf("a", cluster, changes...) }
	one := func(endpoints ...discoveryv1.Endpoint) sliceList {
		return sliceList{sliceOf("x", "a", 8080, endpoints...)}
	}
	otherFamily := sliceOf("x", "a", 8080, ready("10.42.0.9"))
	otherFamily.AddressType = discoveryv1.AddressTypeIPv6
	both := one(on("n1", ready("10.42.0.3")), on("n2", ready("10.42.1.3")))
	elsewhere := one(on("n2", ready("10.42.1.3")))
	everywhere := []string{"10.42.0.3:8080", "10.42.1.3:8080"}
	for name, c := range map[string]struct {
		service *corev1.Service
		slices  sliceList
		want    []network.Service
	}{
		"no endpoints": {service(), nil, []network.Service{leads("10.96.0.9:80")}},
		"all slices, once, in order": {service(), sliceList{sliceOf("y", "a", 8081, ready("10.42.0.4"), ready("10.42.0.3")), sliceOf("x", "a", 8080, unready("10.42.0.4")), sliceOf("z", "a", 8080, ready("10.42.0.4"))},
			[]network.Service{leads("10.96.0.9:80", "10.42.0.3:8081", "10.42.0.4:8080", "10.42.0.4:8081")}},
		"the ready only":           {service(), one(ready("10.42.0.3"), ending("10.42.0.4"), unready("10.42.0.5")), []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")}},
		"ending, where none is":    {service(), one(ending("10.42.0.4"), unready("10.42.0.5")), []network.Service{leads("10.96.0.9:80", "10.42.0.4:8080")}},
		"the other family":         {service(), sliceList{otherFamily}, []network.Service{leads("10.96.0.9:80")}},
		"a port of other protocol": {service(udp), one(ready("10.42.0.3")), []network.Service{with(leads("10.96.0.9:80"), func(s *network.Service) { s.Protocol = 17 })}},
		"a port of other name":     {service(func(s *corev1.Service) { s.Spec.Ports[0].Name = "db" }), one(ready("10.42.0.3")), []network.Service{leads("10.96.0.9:80")}},
		"headless":                 {serviceOf("a", corev1.ClusterIPNone), nil, nil},
		"headless by label":        {service(func(s *corev1.Service) { s.Labels[corev1.IsHeadlessService] = "" }), nil, nil},
		"of another proxy":         {service(func(s *corev1.Service) { s.Labels[proxyNameLabel] = "other" }), nil, nil},
		"a name elsewhere":         {service(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }), nil, nil},
		"gone":                     {nil, both, nil},

		"node port": {service(nodePort), both, []network.Service{
			with(leads("10.96.0.9:80", everywhere...), pods("10.42.0.3")), with(leads("0.0.0.0:30080", everywhere...), isExternal, pods("10.42.0.3"))}},
		"external addresses, and a load balancer's that sends packets on unchanged": {service(nodePort, balanced, externalIPs), nil, []network.Service{
			leads("10.96.0.9:80"), with(leads("0.0.0.0:30080"), isExternal), with(leads("192.0.2.9:80"), isExternal),
			with(leads("203.0.113.5:80"), isExternal)}},
		"node port, local": {service(nodePort, externalLocal), both, []network.Service{
			with(leads("10.96.0.9:80", everywhere...), pods("10.42.0.3")),
			with(leads("0.0.0.0:30080", everywhere...), outside("10.42.0.3:8080"), pods("10.42.0.3"))}},
		"node port, local, none here": {service(nodePort, externalLocal), elsewhere, []network.Service{
			leads("10.96.0.9:80", "10.42.1.3:8080"), with(leads("0.0.0.0:30080", "10.42.1.3:8080"), outside())}},
		"node port, local, one here that ends": {service(nodePort, externalLocal), one(on("n1", ending("10.42.0.3")), on("n2", ready("10.42.1.3"))), []network.Service{
			leads("10.96.0.9:80", "10.42.1.3:8080"), with(leads("0.0.0.0:30080", "10.42.1.3:8080"), outside("10.42.0.3:8080"), pods("10.42.0.3"))}},
		"internal local":            {service(internalLocal), both, []network.Service{with(leads("10.96.0.9:80", "10.42.0.3:8080"), pods("10.42.0.3"))}},
		"internal local, none here": {service(internalLocal), elsewhere, []network.Service{with(leads("10.96.0.9:80"), isSilent)}},
		"internal local, none":      {service(internalLocal), nil, []network.Service{leads("10.96.0.9:80")}},
		"affinity": {service(stay), both, []network.Service{
			with(leads("10.96.0.9:80", everywhere...), pods("10.42.0.3"), func(s *network.Service) { s.Affinity = 3 * time.Hour })}},

		"hints for this node":         {service(), one(hint("n1", "z1", ready("10.42.0.3")), hint("n2", "z1", ready("10.42.1.3"))), []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")}},
		"hints for this zone":         {service(), one(hint("", "z1", ready("10.42.0.3")), hint("", "z2", ready("10.42.1.3"))), []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")}},
		"hints for other nodes":       {service(), one(hint("n3", "z1", ready("10.42.0.3")), hint("n2", "z2", ready("10.42.1.3"))), []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")}},
		"hints for other zones":       {service(), one(hint("", "z3", ready("10.42.0.3")), hint("", "z2", ready("10.42.1.3"))), []network.Service{leads("10.96.0.9:80", everywhere...)}},
		"one without a hint":          {service(), one(hint("", "z1", ready("10.42.0.3")), ready("10.42.1.3")), []network.Service{leads("10.96.0.9:80", everywhere...)}},
		"the unready needs no hint":   {service(), one(hint("", "z1", ready("10.42.0.3")), hint("", "z2", ready("10.42.1.3")), unready("10.42.1.4")), []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")}},
		"hints, and only ending left": {service(), one(hint("", "z2", ending("10.42.1.3"))), []network.Service{leads("10.96.0.9:80", "10.42.1.3:8080")}},
	} {
		if diff := cmp.Diff(c.want, plan(c.service, c.slices, here).addresses, compareAddresses, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSourceRangesAreForLoadBalancers(t *testing.T) {
	for name, c := range map[string]struct {
		ranges []string
		want   []string
	}{
		"all":                 {nil, nil},
		"one in another":      {[]string{"10.1.0.0/16", " 10.0.0.0/8", "192.0.2.7/24"}, []string{"10.0.0.0/8", "192.0.2.0/24"}},
		"of the other family": {[]string{"2001:db8::/32"}, []string{"0.0.0.0/32"}},
	} {
		s := serviceOf("a", "10.96.0.9", nodePort, balanced, externalIPs, sources(c.ranges...))
		want := []network.Service{leads("10.96.0.9:80"), with(leads("0.0.0.0:30080"), isExternal),
			with(leads("192.0.2.9:80"), isExternal, only(c.want...)), with(leads("203.0.113.5:80"), isExternal)}
		if diff := cmp.Diff(want, plan(s, nil, here).addresses, compareAddresses); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	s := serviceOf("a", "10.96.0.9", balanced)
	s.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "10.0.0.0/8, 192.0.2.0/24"}
	if got := sourceRanges(s, corev1.IPv4Protocol); len(got) != 2 {
		t.Errorf("by annotation: %v", got)
	}
}

func TestHealthPorts(t *testing.T) {
	slices := sliceList{sliceOf("x", "a", 8080, on("n1", ready("10.42.0.3")), on("n1", ending("10.42.0.4")), on("n2", ready("10.42.1.3")))}
	for name, c := range map[string]struct {
		changes     []change
		port, local int
	}{
		"local":     {[]change{balanced, externalLocal}, 30999, 1},
		"cluster":   {[]change{balanced}, 0, 0},
		"node port": {[]change{nodePort, externalLocal}, 0, 0},
	} {
		if p := plan(serviceOf("a", "10.96.0.9", c.changes...), slices, here); int(p.healthPort) != c.port || p.local != c.local {
			t.Errorf("%s: %d %d", name, p.healthPort, p.local)
		}
	}
}
