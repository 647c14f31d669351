package nettrace

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

var errNoName = errors.New("no such host")

func meta(namespace, name string, set labels.Set) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: set}
}

func node(name, ip, podCIDR, subnet string) *corev1.Node {
	facts := plan.Facts{Mode: plan.Auto, Subnets: []netip.Prefix{netip.MustParsePrefix(subnet)}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{plan.Annotation: facts.String()}}}
	n.Spec.PodCIDR = podCIDR
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	return n
}

func pod(namespace, name, node, ip string, set labels.Set) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(namespace, name, set)}
	p.Spec.NodeName, p.Spec.DNSPolicy = node, corev1.DNSClusterFirst
	p.Spec.Containers = []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, Conditions: []corev1.PodCondition{ready(true)}}
	return p
}

func ready(is bool) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	if !is {
		c.Status = corev1.ConditionFalse
	}
	return c
}

func isReady(p *corev1.Pod) bool { return p.Status.Conditions[0].Status == corev1.ConditionTrue }

func service(namespace, name, ip string, selector labels.Set) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(namespace, name, nil),
		Spec: corev1.ServiceSpec{
			ClusterIP: ip, ClusterIPs: []string{ip}, Selector: selector, Type: corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http"), NodePort: 30080}},
		},
	}
}

// shop has the pod client on node a, and web-0 on node b behind the Service web.
func shop() *World {
	w := &World{
		Nodes:      []*corev1.Node{node("a", "192.0.2.1", "10.42.0.0/24", "192.0.2.0/25"), node("b", "192.0.2.2", "10.42.1.0/24", "192.0.2.0/25")},
		Namespaces: []*corev1.Namespace{{ObjectMeta: meta("", "shop", nil)}, {ObjectMeta: meta("", "office", nil)}},
		Pods: []*corev1.Pod{
			pod("shop", "client", "a", "10.42.0.2", labels.Set{"app": "client"}), pod("shop", "web-0", "b", "10.42.1.2", labels.Set{"app": "web"}),
			pod("office", "clerk", "a", "10.42.0.3", nil),
		},
		Services: []*corev1.Service{service("shop", "web", "10.96.0.7", labels.Set{"app": "web"})},
	}
	w.Lookup = func(name string) ([]netip.Addr, error) {
		if name == "example.com." {
			return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
		}
		return nil, errNoName
	}
	return w
}

// withEndpoints makes the slices as the controller does for what these worlds have.
func (w *World) withEndpoints() *World {
	w.EndpointSlices = nil
	for _, s := range w.Services {
		families := s.Spec.IPFamilies
		if len(families) == 0 {
			families = []corev1.IPFamily{corev1.IPv4Protocol}
		}
		for _, family := range families {
			w.EndpointSlices = append(w.EndpointSlices, w.slice(s, family))
		}
	}
	return w
}

func (w *World) slice(s *corev1.Service, family corev1.IPFamily) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta(s.Namespace, s.Name, labels.Set{discoveryv1.LabelServiceName: s.Name}), AddressType: discoveryv1.AddressType(family),
	}
	for _, p := range w.Pods {
		if len(s.Spec.Selector) == 0 || p.Namespace != s.Namespace || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
			continue
		}
		number := s.Spec.Ports[0].TargetPort.IntVal
		if s.Spec.Ports[0].TargetPort.StrVal == p.Spec.Containers[0].Ports[0].Name {
			number = p.Spec.Containers[0].Ports[0].ContainerPort
		}
		i := slices.IndexFunc(addressesOf(p), func(a netip.Addr) bool { return familyOf(a) == string(family) })
		if number == 0 || i < 0 {
			continue
		}
		slice.Ports = []discoveryv1.EndpointPort{{Name: new(string), Port: &number, Protocol: new(corev1.ProtocolTCP)}}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{addressesOf(p)[i].String()}, NodeName: &p.Spec.NodeName, Conditions: discoveryv1.EndpointConditions{Ready: new(isReady(p))},
		})
	}
	return slice
}

func (w *World) service(name string) *corev1.Service {
	return w.Services[slices.IndexFunc(w.Services, func(s *corev1.Service) bool { return s.Name == name })]
}

func denyAll(kind networkingv1.PolicyType, app string) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: meta("shop", "deny", nil)}
	p.Spec.PodSelector.MatchLabels, p.Spec.PolicyTypes = labels.Set{"app": app}, []networkingv1.PolicyType{kind}
	return p
}

// deadEnd is a world in which a packet stops, and what mends it.
type deadEnd struct {
	from, to    string
	spoil, mend func(*World)
	verdict     Verdict
	step, why   string
}

var deadEnds = map[string]deadEnd{
	"wrong selector": {
		to:    "service/web",
		spoil: func(w *World) { w.service("web").Spec.Selector = labels.Set{"app": "wep"} },
		mend:  func(w *World) { w.service("web").Spec.Selector = labels.Set{"app": "web"} },
		step:  "service", why: "no pod has the labels app=wep",
	},
	"wrong targetPort, a name": {
		to:    "web:80",
		spoil: func(w *World) { w.service("web").Spec.Ports[0].TargetPort = intstr.FromString("htp") },
		mend:  func(w *World) { w.service("web").Spec.Ports[0].TargetPort = intstr.FromString("http") },
		step:  "service", why: `its port 80 leads to a container port named "htp"`,
	},
	"wrong targetPort, a number": {
		to:      "web:80",
		spoil:   func(w *World) { w.service("web").Spec.Ports[0].TargetPort = intstr.FromInt32(81) },
		mend:    func(w *World) { w.service("web").Spec.Ports[0].TargetPort = intstr.FromInt32(8080) },
		verdict: Unsure, step: "port", why: "nothing listens on port 81: its containers declare [8080]",
	},
	"a port that a node's firewall refuses": {
		to:    "192.0.2.2:5432",
		spoil: func(w *World) { w.Nodes[1].Annotations = map[string]string{"setpoint.io/host-firewall": "on"} },
		mend: func(w *World) {
			database := pod("shop", "database", "b", "192.0.2.2", nil)
			database.Spec.HostNetwork, database.Spec.Containers[0].Ports[0].ContainerPort = true, 5432
			w.Pods = append(w.Pods, database)
		},
		step: "node", why: "its firewall keeps pods from the port 5432: no Service leads there",
	},
	"a port that a node's firewall refuses if no Gateway has it": {
		to: "192.0.2.2:5432",
		spoil: func(w *World) {
			w.Nodes[1].Annotations = map[string]string{"setpoint.io/host-firewall": "on"}
			w.Nodes[1].Labels = map[string]string{"setpoint.io/ingress": "80-443"}
		},
		mend:    func(w *World) { w.Nodes[1].Annotations["setpoint.io/host-firewall"] = "off" },
		verdict: Unsure, step: "node", why: "its firewall keeps pods from the port 5432, unless it is a Gateway's",
	},
	"wrong port": {
		to:    "service/web:81",
		spoil: func(*World) {}, mend: func(w *World) { w.service("web").Spec.Ports[0].Port = 81 },
		step: "service", why: "it has no port 81/tcp: it has 80/tcp",
	},
	"no ready endpoint": {
		to:    "10.96.0.7",
		spoil: func(w *World) { w.Pods[1].Status.Conditions[0] = ready(false) },
		mend:  func(w *World) { w.Pods[1].Status.Conditions[0] = ready(true) },
		step:  "service", why: "no ready endpoints: Pod/web-0",
	},
	"policy on ingress": {
		to: "service/web",
		spoil: func(w *World) {
			w.Policies = []*networkingv1.NetworkPolicy{denyAll(networkingv1.PolicyTypeIngress, "web")}
		},
		mend: func(w *World) {
			w.Policies[0].Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
				{PodSelector: &metav1.LabelSelector{MatchLabels: labels.Set{"app": "client"}}},
			}}}
		},
		step: "ingress", why: `no rule of networkpolicy/deny lets TCP port 8080 through from pod/client in shop with the labels "app=client"`,
	},
	"policy on egress": {
		to: "pod/web-0",
		spoil: func(w *World) {
			w.Policies = []*networkingv1.NetworkPolicy{denyAll(networkingv1.PolicyTypeEgress, "client")}
		},
		mend: func(w *World) {
			w.Policies[0].Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(8080))}}}}
		},
		step: "egress", why: "no rule of networkpolicy/deny lets TCP port 8080 through to pod/web-0",
	},
	"a name of another namespace": {
		from: "office/clerk", to: "web:80",
		spoil: func(*World) {},
		mend:  func(w *World) { w.Services = append(w.Services, alias("office", "web", "web.shop.svc.cluster.local")) },
		step:  "dns", why: "a Service web is in namespace shop",
	},
	"internalTrafficPolicy Local": {
		to: "service/web",
		spoil: func(w *World) {
			w.service("web").Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		},
		mend: func(w *World) {
			w.Pods = append(w.Pods, pod("shop", "web-1", "a", "10.42.0.4", labels.Set{"app": "web"}))
		},
		step: "service", why: "its traffic policy is Local",
	},
	"externalTrafficPolicy Local": {
		from: "shop/web-0", to: "192.0.2.1:30080",
		spoil: func(w *World) { w.service("web").Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
		mend: func(w *World) {
			w.service("web").Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		},
		step: "service", why: "its traffic policy is Local",
	},
	"no route between the nodes": {
		to: "web:80",
		spoil: func(w *World) {
			lame := plan.Facts{Mode: plan.Auto, NoVXLAN: "no module"}
			w.Nodes[1].Annotations[plan.Annotation] = lame.String()
		},
		mend: func(w *World) { w.Nodes[1].Annotations[plan.Annotation] = plan.Facts{Mode: plan.Auto}.String() },
		step: "route", why: "node b cannot use VXLAN: no module",
	},
	"an agent that has no route": {
		to: "web:80",
		spoil: func(w *World) {
			w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: networkProblem, Status: corev1.ConditionTrue, Message: "node b: route to 10.42.1.0/24: no such device"}}
		},
		mend: func(w *World) { w.Nodes[0].Status.Conditions = nil },
		step: "route", why: "no such device",
	},
	"node port taken": {
		to: "service/young:30080",
		spoil: func(w *World) {
			young := service("shop", "young", "10.96.0.8", labels.Set{"app": "web"})
			young.CreationTimestamp, young.Spec.Ports[0].Port = metav1.NewTime(time.Unix(9, 0)), 8
			w.Services = append(w.Services, young)
		},
		mend: func(w *World) { w.service("web").Spec.Ports[0].NodePort = 30081 },
		step: "service", why: "its node port 30080 is taken by service/web in shop, which is older",
	},
	"ExternalName of the cluster without a Service": {
		to:    "out:80",
		spoil: func(w *World) { w.Services = append(w.Services, alias("shop", "out", "wep.shop.svc.cluster.local")) },
		mend:  func(w *World) { w.service("out").Spec.ExternalName = "web.shop.svc.cluster.local" },
		step:  "dns", why: "the externalName does not resolve",
	},
	"ExternalName elsewhere that does not resolve": {
		to:    "service/out:443",
		spoil: func(w *World) { w.Services = append(w.Services, alias("shop", "out", "missing.example")) },
		mend:  func(w *World) { w.service("out").Spec.ExternalName = "example.com" },
		step:  "dns", why: "the externalName does not resolve",
	},
	"a headless Service without endpoints": {
		to: "web:8080",
		spoil: func(w *World) {
			w.service("web").Spec.ClusterIP, w.service("web").Spec.ClusterIPs = corev1.ClusterIPNone, nil
			w.Pods[1].Status.Conditions[0] = ready(false)
		},
		mend: func(w *World) { w.Pods[1].Status.Conditions[0] = ready(true) },
		step: "service", why: "no ready endpoints: Pod/web-0",
	},
	"a pod of nobody": {
		to:    "10.42.1.2:8080",
		spoil: func(w *World) { w.Pods[1].Status.Phase = corev1.PodFailed },
		mend:  func(w *World) { w.Pods[1].Status.Phase = corev1.PodRunning },
		step:  "pod", why: "no pod has this address, which is of node b",
	},
	"a resolver that asks others": {
		to:    "web:80",
		spoil: func(w *World) { w.Pods[0].Spec.DNSPolicy = corev1.DNSDefault },
		mend:  func(w *World) { w.Pods[0].Spec.DNSPolicy = corev1.DNSClusterFirst },
		step:  "dns", why: "its dnsPolicy Default does not ask the cluster's DNS",
	},
}

func alias(namespace, name, target string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, name, nil), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: target}}
}

func trace(t *testing.T, w *World, from, to string) Answer {
	t.Helper()
	q, err := Parse("shop", from, to)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Trace(w.withEndpoints(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestDeadEnds: each is told, with what would change it, and once it is changed the packet arrives. The same holds for IPv6.
func TestDeadEnds(t *testing.T) {
	for name, c := range deadEnds {
		for family, in := range map[string]func(*World) *World{"IPv4": func(w *World) *World { return w }, "IPv6": inIPv6} {
			t.Run(name+", "+family, func(t *testing.T) {
				w, mended, to, why := shop(), shop(), c.to, c.why
				c.spoil(w)
				c.spoil(mended)
				c.mend(mended)
				if family == "IPv6" {
					to = sixInText.Replace(to)
				}
				if c.verdict == "" {
					c.verdict = Stops
				}
				if c.from == "" {
					c.from = "client"
				}
				got := trace(t, in(w), c.from, to)
				if last := got.Steps[len(got.Steps)-1]; got.Verdict != c.verdict || last.Step != c.step || !strings.Contains(got.Why, why) || got.Change == "" {
					t.Errorf("spoilt: %+v\nwant %s at %s because of %q", got, c.verdict, c.step, why)
				}
				if got := trace(t, in(mended), c.from, to); got.Verdict != Arrives || got.Why != "" {
					t.Errorf("mended: %+v", got)
				}
			})
		}
	}
}

// TestSomeEndpoints: a policy that holds for one of two pods fails some connections.
func TestSomeEndpoints(t *testing.T) {
	w := shop()
	w.Pods = append(w.Pods, pod("shop", "web-1", "a", "10.42.0.4", labels.Set{"app": "web", "closed": "yes"}))
	closed := denyAll(networkingv1.PolicyTypeIngress, "web")
	closed.Spec.PodSelector.MatchLabels = labels.Set{"closed": "yes"}
	w.Policies = []*networkingv1.NetworkPolicy{closed}
	if got := trace(t, w, "client", "service/web"); got.Verdict != Partly || !strings.Contains(got.Why, "pod/web-1") {
		t.Errorf("%+v", got)
	}
}

func TestPrint(t *testing.T) {
	w := shop()
	w.Policies = []*networkingv1.NetworkPolicy{denyAll(networkingv1.PolicyTypeIngress, "web")}
	var out strings.Builder
	if err := Print(&out, trace(t, w, "client", "web:80")); err != nil {
		t.Fatal(err)
	}
	want := `pod/client does not reach web:80: pod/web-0: no rule of networkpolicy/deny lets TCP port 8080 through from pod/client in shop with the labels "app=client"
  change: allow it in ingress of one of these policies

STEP       VERDICT   OBJECT                        BECAUSE
dns        arrives   web.shop.svc.cluster.local.   has the address 10.96.0.7
service    arrives   service/web                   10.96.0.7:80 leads to 1 endpoint
endpoint   arrives   pod/web-0                     10.42.1.2:8080 on node b
route      arrives   node/b                        route: both nodes are on 192.0.2.0/25
ingress    stops     pod/web-0                     no rule of networkpolicy/deny lets TCP port 8080 through from pod/client in shop with the labels "app=client"
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"pod/web": "pod web 0 TCP", "svc/office/web:80": "service web 80 TCP", "web.shop:53/udp": "name  53 UDP", "10.0.0.1:9": "address  9 TCP",
		"fd42::2": "address  0 TCP", "[fd42::2]": "address  0 TCP", "[fd42::2]:53/udp": "address  53 UDP", "10.0.0.1": "address  0 TCP",
	} {
		q, err := Parse("shop", "pod/client", text)
		got := strings.Join([]string{q.To.Kind, q.To.Object.Name, strconv.Itoa(int(q.To.Port)), string(q.To.Protocol)}, " ")
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", ":80", "pod/", "deploy/web", "web:0", "web:x", "web:80/icmp", "fe80::1%eth0", "[10.0.0.1]:80", "[web]:80", "fd42::2/udp", "pod/a/b/c"} {
		if _, err := Parse("shop", "client", text); !errors.Is(err, ErrTo) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "a/b/c", "/b"} {
		if _, err := Parse("shop", text, "web:80"); !errors.Is(err, ErrFrom) {
			t.Errorf("from %q: %v", text, err)
		}
	}
}
