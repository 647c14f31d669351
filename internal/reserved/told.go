package reserved

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Annotation says on a Node which ports and addresses its machine has beside what the Node's fields say, in the form of Told; on the
// EndpointSlice default/kubernetes what servers there are, in that of TextOf.
const Annotation = "setpoint.io/reserved"

// Told is what a node tells of its machine.
type Told struct {
	// Gossip is the port, 0 for a node that does not gossip.
	Gossip int32 `json:"gossip"`
	// Pods are ports that pods have of the machine: host ports, and what pods with its network declare. Gateways are served at the others.
	// Both are in order, and portsMax at most.
	Pods     []Port  `json:"pods,omitempty"`
	Gateways []int32 `json:"gateways,omitempty"`
}

// portsMax is how many ports of each kind a node tells, and how many are read of what it tells.
const portsMax = 500

func (t Told) bounded() Told {
	t.Pods, t.Gateways = t.Pods[:min(len(t.Pods), portsMax)], t.Gateways[:min(len(t.Gateways), portsMax)]
	return t
}

// String is the annotation's value.
func (t Told) String() string {
	text, _ := json.Marshal(t.bounded()) // numbers always have a form
	return string(text)
}

// IngressLabel is on nodes whose agents have ports for Ingresses. A node writes it itself; who may serve them say Edges.
const IngressLabel = "setpoint.io/ingress"

// IngressPortsText is the value of IngressLabel for these ports, 0 being none: "80-443".
func IngressPortsText(plain, secure int) string { return fmt.Sprintf("%d-%d", plain, secure) }

// IngressPorts are those that a node has for Ingresses; ok is false for one that has none.
func IngressPorts(node *corev1.Node) (plain, secure int, ok bool) {
	n, _ := fmt.Sscanf(node.Labels[IngressLabel], "%d-%d", &plain, &secure)
	return plain, secure, n == 2
}

// SharedPorts are those at which nodes serve Ingresses, with TLS or without.
func SharedPorts(nodes []*corev1.Node) map[int]bool {
	shared := map[int]bool{}
	for _, node := range nodes {
		if plain, secure, ok := IngressPorts(node); ok {
			shared[plain], shared[secure] = false, true
		}
	}
	delete(shared, 0)
	return shared
}

// OfNode is the machine of a Node, as far as the Node says.
func OfNode(node *corev1.Node) *Machine {
	m := &Machine{Name: "node " + node.Name, Ports: map[Port]Use{}}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			m.at(a.Address)
		}
	}
	var told Told
	_ = json.Unmarshal([]byte(node.Annotations[Annotation]), &told) // what cannot be read says nothing
	told = told.bounded()
	m.use(Pod, told.Pods...)
	for _, port := range told.Gateways {
		m.use(Gateway, TCP(port))
	}
	if plain, secure, ok := IngressPorts(node); ok {
		m.use(Ingress, TCP(int32(plain)), TCP(int32(secure)))
	}
	m.use(Gossip, TCP(told.Gossip), UDP(told.Gossip))
	m.use(Agent, TCP(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
	return m
}

// Server is a server of the control plane.
type Server struct {
	Name string `json:"name"`
	// Addresses are those of its machine.
	Addresses []string `json:"addresses"`
	// Port is the API's, Gossip that of gossip; 0: it is not known.
	Port   int32 `json:"port"`
	Gossip int32 `json:"gossip,omitempty"`
}

// Servers is the EndpointSlice that tells of them. Nobody writes it but the leader and who may write all slices of its namespace.
var Servers = cache.ObjectName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// TextOf is the annotation's value for these servers.
func TextOf(servers []Server) string {
	text, _ := json.Marshal(servers) // texts and numbers always have a form
	return string(text)
}

// ServersOf reads what the slice tells; nil, or another slice, tells of none.
func ServersOf(slice *discoveryv1.EndpointSlice) (servers []Server) {
	if slice == nil || slice.Namespace != Servers.Namespace || slice.Name != Servers.Name {
		return nil
	}
	_ = json.Unmarshal([]byte(slice.Annotations[Annotation]), &servers) // what cannot be read says nothing
	return servers
}

// OfServers are the machines of the servers that the slice tells of.
func OfServers(slice *discoveryv1.EndpointSlice) (all []Machine) {
	for _, server := range ServersOf(slice) {
		m := Machine{Name: "server " + server.Name, Ports: map[Port]Use{}}
		for _, ip := range server.Addresses {
			m.at(ip)
		}
		m.use(Gossip, TCP(server.Gossip), UDP(server.Gossip))
		m.use(API, TCP(server.Port))
		all = append(all, m)
	}
	return all
}

// Keep takes addresses and ports of gossip that are not known now from what was known before.
func Keep(now, former []Server) []Server {
	now = slices.Clone(now)
	for i := range now {
		at := slices.IndexFunc(former, func(f Server) bool { return f.Name == now[i].Name })
		if at < 0 {
			continue
		}
		now[i].Gossip = cmp.Or(now[i].Gossip, former[at].Gossip)
		if len(now[i].Addresses) == 0 {
			now[i].Addresses = former[at].Addresses
		}
	}
	return now
}

// PortOf is that of host:port; 0 if there is none.
func PortOf(endpoint string) int32 {
	_, text, _ := net.SplitHostPort(endpoint)
	port, _ := strconv.ParseUint(text, 10, 16)
	return int32(port)
}

// Changed reports whether another state of a Node or an EndpointSlice makes another Book. Each may be nil.
func Changed(before, after metav1.Object) bool {
	return toldBy(before) != toldBy(after)
}

// toldBy is all that a Book takes from an object, as text.
func toldBy(o metav1.Object) string {
	switch o := o.(type) {
	case *corev1.Node:
		if o != nil {
			return fmt.Sprint(*OfNode(o)) // fmt sorts maps
		}
	case *discoveryv1.EndpointSlice:
		if servers := ServersOf(o); len(servers) > 0 {
			return TextOf(servers)
		}
	}
	return ""
}
