package services

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// claims is a world of Services that claim few addresses and ports: node ports, as older servers have stored them, health ports, external
// addresses and those of load balancers, some of which are machines'. Machines come and go, and have some of the ports for themselves.
type claims struct {
	random   *rand.Rand
	made     int
	services map[types.NamespacedName]*corev1.Service
	machines *reserved.Book
	book     *book
}

// where they are asked for: at a machine, at one that comes and goes, and at none.
var claimedAt = []string{"192.0.2.1", "192.0.2.2", "203.0.113.5"}

func (c *claims) port() int32 { return []int32{80, 6443, 30001, 30002, 30003}[c.random.IntN(5)] }

func (c *claims) nodePort() int32 { return 30001 + c.random.Int32N(3) }

func (c *claims) protocol() corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}[c.random.IntN(3)]
}

// change makes, changes or takes away a Service or a machine's port, and has the book know.
func (c *claims) change() {
	names := slices.SortedFunc(maps.Keys(c.services), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	switch n := c.random.IntN(8); {
	case n < 3 || len(names) == 0:
		c.made++
		s := serviceOf(fmt.Sprint("s", c.made), fmt.Sprintf("10.96.0.%d", c.made), c.claim)
		s.Namespace = []string{"a", "b"}[c.random.IntN(2)]
		s.CreationTimestamp = metav1.NewTime(time.Unix(c.random.Int64N(20), 0)) // some in one second, and some that were restored
		c.put(s)
	case n < 5:
		name := names[c.random.IntN(len(names))]
		delete(c.services, name)
		c.book.put(name, entry{})
	case n < 6:
		s := c.services[names[c.random.IntN(len(names))]].DeepCopy()
		c.claim(s)
		c.put(s)
	default:
		c.changeMachines()
		for _, s := range c.services {
			c.put(s)
		}
	}
}

// claim gives a Service what it asks for.
func (c *claims) claim(s *corev1.Service) {
	s.Spec.Type, s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceTypeNodePort, "", 0
	s.Spec.Ports[0].Port, s.Spec.Ports[0].Protocol, s.Spec.Ports[0].NodePort = c.port(), c.protocol(), c.nodePort()
	s.Spec.ExternalIPs, s.Status.LoadBalancer.Ingress = nil, nil
	switch at := claimedAt[c.random.IntN(len(claimedAt))]; c.random.IntN(3) {
	case 0:
		s.Spec.ExternalIPs = []string{at}
	case 1:
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort, s.Status.LoadBalancer.Ingress = c.nodePort(), []corev1.LoadBalancerIngress{{IP: at}}
	}
}

func (c *claims) changeMachines() {
	switch c.random.IntN(4) {
	case 0:
		m := nodeAt("n2", claimedAt[1])
		m.Ports[reserved.TCP(c.nodePort())] = reserved.Agent
		c.machines.SetNode("n2", m)
	case 1:
		c.machines.SetNode("n2", nil)
	case 2:
		c.machines.SetServers([]reserved.Machine{{Name: "server s", Ports: map[reserved.Port]reserved.Use{reserved.TCP(c.nodePort()): reserved.API}}})
	case 3:
		m := nodeAt(here.Node, claimedAt[0])
		m.Ports[reserved.TCP(c.nodePort())] = []reserved.Use{reserved.Agent, reserved.Gateway, reserved.Pod}[c.random.IntN(3)]
		c.machines.SetNode(here.Node, m)
	}
}

func (c *claims) put(s *corev1.Service) {
	name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	c.services[name] = s
	c.book.put(name, c.entry(s))
}

func (c *claims) entry(s *corev1.Service) entry {
	return entry{plan(s, nil, here).withoutReserved(c.machines, here.Node), s.CreationTimestamp.Unix()}
}

// oldest is who is to have what several claim.
func oldest(all []*corev1.Service) types.NamespacedName {
	first := slices.MinFunc(all, func(a, b *corev1.Service) int {
		if d := a.CreationTimestamp.Unix() - b.CreationTimestamp.Unix(); d != 0 {
			return int(d)
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return types.NamespacedName{Namespace: first.Namespace, Name: first.Name}
}

// kept says why a node does not serve an external address and port for a Service; "" if it does. It is the rule of
// docs/operations/network.md in words of its own.
func (c *claims) kept(a network.ServiceAddress, s *corev1.Service) string {
	port := reserved.Port{Protocol: protocolOf(a), Number: int32(a.Address.Port())}
	if ip := a.Address.Addr(); !ip.IsUnspecified() {
		own := s.Spec.Ports[0].NodePort == port.Number // and of the same protocol, since there is one port
		if holding, taken := c.machines.At(ip, port); taken && (holding.Use != reserved.NodePort || !own) {
			return holding.String()
		}
		if c.machines.HasMachine(ip) && servicerange.IsNodePort(port.Number) && !own {
			return "a node port of others"
		}
		return ""
	}
	if holding, taken := c.machines.From(here.Node, a.Address.Addr(), port); taken {
		return holding.String()
	}
	return ""
}

// judge compares the book with what the objects say by themselves.
func (c *claims) judge(t *testing.T) {
	claimants, health := map[network.ServiceAddress][]*corev1.Service{}, map[uint16][]*corev1.Service{}
	for _, s := range c.services {
		p := plan(s, nil, here)
		for _, a := range p.addresses {
			if a.External {
				claimants[a.ServiceAddress] = append(claimants[a.ServiceAddress], s)
			}
		}
		if p.healthPort != 0 {
			health[p.healthPort] = append(health[p.healthPort], s)
		}
	}
	for a, all := range claimants {
		var may, mayNot []*corev1.Service
		for _, s := range all {
			if c.kept(a, s) == "" {
				may = append(may, s)
			} else {
				mayNot = append(mayNot, s)
			}
		}
		switch holder, served := c.book.holder(a); {
		case len(may) == 0 && served:
			t.Errorf("%s is served for %s: %s", described(a), holder, c.kept(a, c.services[holder]))
		case len(may) > 0 && (!served || holder != oldest(may)):
			t.Errorf("%s is %s's (%v), want %s's", described(a), holder, served, oldest(may))
		}
		c.judgeTold(t, mayNot, described(a))
	}
	open := c.book.healthPorts()
	for port, all := range health {
		_, taken := c.machines.From(here.Node, netip.IPv4Unspecified(), reserved.TCP(int32(port)))
		if got, is := open[port]; is == taken || is && got.service != oldest(all) {
			t.Errorf("health port %d is %s's (%v), want %s's (%v)", port, got.service, is, oldest(all), !taken)
		}
		if taken {
			c.judgeTold(t, all, fmt.Sprintf("health check node port %d/TCP", port))
		}
	}
}

// judgeTold: each of them is told why something of it is not served.
func (c *claims) judgeTold(t *testing.T, all []*corev1.Service, what string) {
	for _, s := range all {
		if told := c.entry(s).refused; !strings.Contains(told, " is not served") {
			t.Errorf("%s/%s is not told of %s: %q", s.Namespace, s.Name, what, told)
		}
	}
}

// fresh is a book of the same objects, as after a restart of the agent.
func (c *claims) fresh() *book {
	var all []*corev1.Service
	for _, s := range c.services {
		all = append(all, s)
	}
	return NewLookup(all, func(*corev1.Service) []*discoveryv1.EndpointSlice { return nil }, here, c.machines).book
}

// TestFirstClaimsInManyWorlds: whatever comes, changes and goes, each node port, health port, external address and port has one Service, the
// oldest that claims it; what a machine has is nobody's, and who claims it is told; and a book that followed the changes says what one says
// that is made anew, so what is given back goes to the next.
func TestFirstClaimsInManyWorlds(t *testing.T) {
	for seed := range uint64(200) {
		c := &claims{
			random: rand.New(rand.NewPCG(seed, 3)), services: map[types.NamespacedName]*corev1.Service{}, machines: reserved.New(), book: newBook(),
		}
		c.machines.SetNode(here.Node, nodeAt(here.Node, claimedAt[0]))
		for step := range 60 {
			c.change()
			c.judge(t)
			again := c.fresh()
			for a := range again.holders {
				is, _ := c.book.holder(a)
				if anew, _ := again.holder(a); anew != is {
					t.Errorf("%s is %s's, and anew %s's", described(a), is, anew)
				}
			}
			if len(again.holders) != len(c.book.holders) || !maps.Equal(again.healthPorts(), c.book.healthPorts()) {
				t.Errorf("%d addresses and %v, anew %d and %v", len(c.book.holders), c.book.healthPorts(), len(again.holders), again.healthPorts())
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}
