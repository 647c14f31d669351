package services

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/network"
)

var compareAddresses = cmpopts.EquateComparable(netip.AddrPort{})

func serviceOf(name, address string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{}}, Spec: corev1.ServiceSpec{
		ClusterIP: address, ClusterIPs: []string{address}, Ports: []corev1.ServicePort{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}}}}
	for _, c := range change {
		c(s)
	}
	return s
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

func leads(address string, endpoints ...string) network.Service {
	s := network.Service{Protocol: 6, Address: netip.MustParseAddrPort(address)}
	for _, e := range endpoints {
		s.Endpoints = append(s.Endpoints, netip.MustParseAddrPort(e))
	}
	return s
}

func TestPlan(t *testing.T) {
	a := serviceOf("a", "10.96.0.9")
	otherFamily := sliceOf("x", "a", 8080, ready("10.42.0.9"))
	otherFamily.AddressType = discoveryv1.AddressTypeIPv6
	otherNamespace := sliceOf("x", "a", 8080, ready("10.42.0.9"))
	otherNamespace.Namespace = "other"
	udp := func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }
	type objects struct {
		services []*corev1.Service
		slices   []*discoveryv1.EndpointSlice
	}
	one := func(s *corev1.Service, slices ...*discoveryv1.EndpointSlice) objects {
		return objects{[]*corev1.Service{s}, slices}
	}
	for name, c := range map[string]struct {
		in   objects
		want []network.Service
	}{
		"no endpoints": {one(a), []network.Service{leads("10.96.0.9:80")}},
		"all slices, once, in order": {one(a, sliceOf("y", "a", 8081, ready("10.42.0.4"), ready("10.42.0.3")), sliceOf("x", "a", 8080, ready("10.42.0.4")), sliceOf("z", "a", 8080, ready("10.42.0.4"))),
			[]network.Service{leads("10.96.0.9:80", "10.42.0.3:8081", "10.42.0.4:8080", "10.42.0.4:8081")}},
		"the ready only":           {one(a, sliceOf("x", "a", 8080, ready("10.42.0.3"), ending("10.42.0.4"), unready("10.42.0.5"))), []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")}},
		"ending, where none is":    {one(a, sliceOf("x", "a", 8080, ending("10.42.0.4"), unready("10.42.0.5"))), []network.Service{leads("10.96.0.9:80", "10.42.0.4:8080")}},
		"slices of others":         {one(a, sliceOf("x", "b", 8080, ready("10.42.0.3")), otherNamespace, otherFamily), []network.Service{leads("10.96.0.9:80")}},
		"a port of other protocol": {one(serviceOf("a", "10.96.0.9", udp), sliceOf("x", "a", 8080, ready("10.42.0.3"))), []network.Service{{Protocol: 17, Address: netip.MustParseAddrPort("10.96.0.9:80")}}},
		"a port of other name":     {one(serviceOf("a", "10.96.0.9", func(s *corev1.Service) { s.Spec.Ports[0].Name = "db" }), sliceOf("x", "a", 8080, ready("10.42.0.3"))), []network.Service{leads("10.96.0.9:80")}},
		"headless":                 {one(serviceOf("a", corev1.ClusterIPNone)), nil},
		"headless by label":        {one(serviceOf("a", "10.96.0.9", func(s *corev1.Service) { s.Labels[corev1.IsHeadlessService] = "" })), nil},
		"of another proxy":         {one(serviceOf("a", "10.96.0.9", func(s *corev1.Service) { s.Labels[proxyNameLabel] = "other" })), nil},
		"a name elsewhere":         {one(serviceOf("a", "10.96.0.9", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName })), nil},
		"one address twice": {objects{[]*corev1.Service{a, serviceOf("b", "10.96.0.9"), serviceOf("c", "10.96.0.7")}, []*discoveryv1.EndpointSlice{sliceOf("x", "a", 8080, ready("10.42.0.3"))}},
			[]network.Service{leads("10.96.0.7:80"), leads("10.96.0.9:80", "10.42.0.3:8080")}},
	} {
		if diff := cmp.Diff(c.want, plan(c.in.services, c.in.slices), compareAddresses); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// told records what the network was told.
type told struct {
	mu   sync.Mutex
	all  [][]network.Service
	fail error
}

func (n *told) set(services []network.Service) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, services)
	return n.fail
}

func (n *told) take() [][]network.Service {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	return all
}

func (n *told) failWith(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

func TestTheNetworkIsToldOfChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, net := fake.NewClientset(), &told{}
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		run := Watch(Config{Informers: factory, Set: net.set, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		var children sync.WaitGroup
		children.Go(func() { run(ctx) })
		defer children.Wait()
		defer factory.Shutdown()
		defer cancel()
		factory.StartWithContext(ctx)
		expect := func(what string, want ...[]network.Service) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, net.take(), compareAddresses, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		after := func(d time.Duration) { <-time.After(d) }

		after(time.Second) // informers say ten times a second whether they have all
		expect("an empty cluster", []network.Service{})
		slice := sliceOf("x", "a", 8080, ready("10.42.0.3"))
		if _, err := client.CoreV1().Services("ns").Create(ctx, serviceOf("a", "10.96.0.9"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.DiscoveryV1().EndpointSlices("ns").Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		after(settleTime)
		expect("two changes together", []network.Service{leads("10.96.0.9:80", "10.42.0.3:8080")})

		slice.Labels["other"] = "label"
		update(t, client, slice)
		after(settleTime)
		expect("nothing for the network")

		net.failWith(errors.New("busy"))
		slice.Endpoints = []discoveryv1.Endpoint{ready("10.42.0.4")}
		update(t, client, slice)
		after(settleTime)
		want := []network.Service{leads("10.96.0.9:80", "10.42.0.4:8080")}
		expect("a network that fails", want)
		net.failWith(nil)
		after(retryInterval)
		expect("again", want)
		after(time.Hour)
		expect("quiet")
	})
}

func update(t *testing.T, client *fake.Clientset, slice *discoveryv1.EndpointSlice) {
	t.Helper()
	if _, err := client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(t.Context(), slice.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
