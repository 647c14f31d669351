package reserved

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// Book knows what is reserved. Make it with New.
type Book struct {
	mu       sync.RWMutex
	machines map[key]Machine
	at       map[netip.Addr][]key
	uses     map[Port]map[source]int // how many machines have the port by that
	ranges   []Range
	changed  []func()
}

// key is under which name a machine is told of.
type key struct {
	server bool
	name   string
}

// node tells of a Node's own words: they count for its own machine, so that a node cannot keep ports of the others from anybody.
func (k key) node() bool { return !k.server && k.name != "" }

// source is what a port is for, and who says so.
type source struct {
	use  Use
	node bool
}

// Range is a range whose addresses the cluster gives out.
type Range struct {
	Prefix netip.Prefix
	// Of is whose addresses they are.
	Of string
}

// Whose addresses ranges have.
const (
	Services = "Services"
	Pods     = "pods"
)

// New returns a Book of the ports that a machine has if nobody says otherwise. A server or a node may come at any time.
func New() *Book {
	b := &Book{machines: map[key]Machine{}, at: map[netip.Addr][]key{}, uses: map[Port]map[source]int{}}
	usual := Machine{Ports: map[Port]Use{}}
	usual.use(VXLAN, UDP(vxlanPort))
	usual.use(WireGuard, UDP(wireGuardPort))
	usual.use(API, TCP(apiPort))
	usual.use(Agent, TCP(agentPort))
	usual.use(Gossip, TCP(serverGossipPort), UDP(serverGossipPort), TCP(nodeGossipPort), UDP(nodeGossipPort))
	b.set(key{}, usual)
	return b
}

// Of returns the Book of these nodes and of the servers that one of the slices tells of. A slice may be nil.
func Of(nodes []*corev1.Node, slices ...*discoveryv1.EndpointSlice) *Book {
	b := New()
	for _, n := range nodes {
		b.SetNode(n.Name, OfNode(n))
	}
	for _, s := range slices {
		if servers := OfServers(s); len(servers) > 0 {
			b.SetServers(servers)
		}
	}
	return b
}

// OnChange has f called after each change of what is reserved that comes later.
func (b *Book) OnChange(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = append(b.changed, f)
}

// SetNode tells of a node; nil: there is none of that name.
func (b *Book) SetNode(name string, m *Machine) {
	if b.replace(key{name: name}, m) {
		b.tell()
	}
}

// SetServers tells of all servers.
func (b *Book) SetServers(all []Machine) {
	changed := false
	for _, k := range b.formerServers(all) {
		changed = b.replace(k, nil) || changed
	}
	for _, m := range all {
		changed = b.replace(key{true, m.Name}, &m) || changed
	}
	if changed {
		b.tell()
	}
}

// Servers are where the API is served, in order.
func (b *Book) Servers() (all []netip.AddrPort) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for k, m := range b.machines {
		for port, use := range m.Ports {
			if !k.server || use != API {
				continue
			}
			for _, ip := range m.Addresses {
				all = append(all, netip.AddrPortFrom(ip, uint16(port.Number)))
			}
		}
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}

// ServerAt returns the machine of a server that has the address.
func (b *Book) ServerAt(ip netip.Addr) (m Machine, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, k := range b.at[normal(ip)] {
		if k.server {
			return b.machines[k], true
		}
	}
	return Machine{}, false
}

// HasMachine tells whether an address is a server's or node's.
func (b *Book) HasMachine(ip netip.Addr) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.at[normal(ip)]) > 0
}

// formerServers are those that are not among all.
func (b *Book) formerServers(all []Machine) (former []key) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for k := range b.machines {
		if k.server && !slices.ContainsFunc(all, func(m Machine) bool { return m.Name == k.name }) {
			former = append(former, k)
		}
	}
	return former
}

// SetRanges tells of the ranges whose addresses the cluster gives out. One that is not valid counts as none.
func (b *Book) SetRanges(all ...Range) {
	all = slices.DeleteFunc(all, func(r Range) bool { return !r.Prefix.IsValid() })
	b.mu.Lock()
	same := slices.Equal(b.ranges, all)
	b.ranges = all
	b.mu.Unlock()
	if !same {
		b.tell()
	}
}

func (b *Book) tell() {
	b.mu.RLock()
	all := slices.Clone(b.changed)
	b.mu.RUnlock()
	for _, f := range all {
		f()
	}
}

// replace reports whether that changed anything.
func (b *Book) replace(k key, m *Machine) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, had := b.machines[k]
	if m == nil && !had || m != nil && had && was.equal(*m) {
		return false
	}
	b.forget(k)
	if m != nil {
		b.set(k, *m)
	}
	return true
}

// set needs b.mu, and that nothing is known under the key.
func (b *Book) set(k key, m Machine) {
	b.machines[k] = m
	for _, ip := range m.Addresses {
		b.at[ip] = append(b.at[ip], k)
	}
	for port, use := range m.Ports {
		if b.uses[port] == nil {
			b.uses[port] = map[source]int{}
		}
		b.uses[port][source{use, k.node()}]++
	}
}

// forget needs b.mu.
func (b *Book) forget(k key) {
	m := b.machines[k]
	delete(b.machines, k)
	for _, ip := range m.Addresses {
		if b.at[ip] = slices.DeleteFunc(b.at[ip], func(other key) bool { return other == k }); len(b.at[ip]) == 0 {
			delete(b.at, ip)
		}
	}
	for port, use := range m.Ports {
		from := source{use, k.node()}
		if b.uses[port][from]--; b.uses[port][from] == 0 {
			delete(b.uses[port], from)
		}
		if len(b.uses[port]) == 0 {
			delete(b.uses, port)
		}
	}
}

// Holding is what is reserved, and for what.
type Holding struct {
	// Port has number 0 where the address is reserved with all ports.
	Port Port
	Use  Use
	// By is the machine that is meant, or the range.
	By string
}

// String is the middle of a sentence: "port 6443/TCP of server a is for the API".
func (h Holding) String() string {
	if h.Port.Number == 0 {
		return h.By
	}
	return fmt.Sprintf("port %s of %s is for %s", h.Port, h.By, h.Use)
}

// At returns who has a port of an address. A loopback address is one of every machine, and so is an unspecified one.
func (b *Book) At(ip netip.Addr, port Port) (Holding, bool) {
	if ip = normal(ip); ofAll(ip) {
		return b.Anywhere(port)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, r := range b.ranges {
		if r.Prefix.Contains(ip) {
			return Holding{By: fmt.Sprintf("addresses of %s are given out by the cluster, to %s", r.Prefix, r.Of)}, true
		}
	}
	return b.ofMachine(ip, port)
}

// From is At as a node sees it: the loopback and unspecified addresses are its own.
func (b *Book) From(node string, ip netip.Addr, port Port) (Holding, bool) {
	if !ofAll(normal(ip)) {
		return b.At(ip, port)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	here := b.machines[key{name: node}]
	if use, ok := here.Ports[port]; ok && !use.ofOne() {
		return Holding{port, use, here.Name}, true
	}
	return b.everywhere(port)
}

func ofAll(ip netip.Addr) bool { return ip.IsUnspecified() || ip.IsLoopback() }

// ofMachine needs b.mu, and a normal address.
func (b *Book) ofMachine(ip netip.Addr, port Port) (Holding, bool) {
	here := b.at[ip]
	if len(here) == 0 {
		return Holding{}, false
	}
	for _, k := range here {
		if use, ok := b.machines[k].Ports[port]; ok {
			return Holding{port, use, b.machines[k].Name}, true
		}
	}
	if h, ok := b.first(port, false, b.machines[here[0]].Name); ok {
		return h, true
	}
	i := slices.IndexFunc(here, key.node)
	if i < 0 || !servicerange.IsNodePort(port.Number) {
		return Holding{}, false
	}
	return Holding{port, NodePort, b.machines[here[i]].Name}, true
}

// Everywhere returns what a port is reserved for on all machines: that is of servers, of which one may come to any machine, and what a
// machine has if nobody says otherwise.
func (b *Book) Everywhere(port Port) (Holding, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.everywhere(port)
}

// Anywhere returns what a port is reserved for on all machines or on some.
func (b *Book) Anywhere(port Port) (Holding, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if h, ok := b.everywhere(port); ok {
		return h, true
	}
	return b.first(port, true, "some machines of the cluster")
}

// Told reports whether some machine has the port for anything, a pod's host port too.
func (b *Book) Told(port Port) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.uses[port]) > 0
}

// everywhere needs b.mu.
func (b *Book) everywhere(port Port) (Holding, bool) {
	return b.first(port, false, "every machine of the cluster")
}

// first is the first use by its text, so that the same is told each time: of those that nodes say, or of the others. It needs b.mu.
func (b *Book) first(port Port, node bool, by string) (h Holding, ok bool) {
	for from := range b.uses[port] {
		if from.node == node && !from.use.ofOne() && (!ok || cmp.Less(from.use, h.Use)) {
			h, ok = Holding{port, from.use, by}, true
		}
	}
	return h, ok
}

// Closed reports whether a port of an address is one that only machines of the cluster have to reach.
func (b *Book) Closed(ip netip.Addr, port Port) (Holding, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	h, ok := b.ofMachine(normal(ip), port)
	return h, ok && h.Use.Closed()
}
