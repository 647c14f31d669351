package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// ErrPortInUse says that a host port belongs to a process of the machine or to another pod.
var ErrPortInUse = errors.New("the host port is in use")

// HostPort leads what is sent to a port of the machine to a pod's port.
type HostPort struct {
	// Protocol is IANA's number.
	Protocol uint8
	// Address is one of the machine's; unspecified means all of its family and invalid all of them, loopback too: that of IPv4.
	Address netip.Addr
	Port    uint16
	PodPort uint16
}

// everywhere: of one family, or of both.
func (p HostPort) everywhere() bool { return !p.Address.IsValid() || p.Address.IsUnspecified() }

// in reports whether the port has an address of the family.
func (p HostPort) in(f family) bool { return !p.Address.IsValid() || f.Has(p.Address) }

// on is the address of the family, unspecified for all of them.
func (p HostPort) on(f family) netip.Addr {
	if p.everywhere() {
		return f.unspecified
	}
	return p.Address
}

func (p HostPort) overlaps(q HostPort) bool {
	common := p.in(inet) && q.in(inet) || p.in(inet6) && q.in(inet6)
	return common && p.Protocol == q.Protocol && p.Port == q.Port && (p.everywhere() || q.everywhere() || p.Address == q.Address)
}

// free asks the machine: a process that listens there would no longer be reached.
func (p HostPort) free(f family) error {
	at, version := netip.AddrPortFrom(p.on(f), p.Port).String(), "4"
	if f.number == inet6.number {
		version = "6"
	}
	var (
		socket io.Closer
		err    error
	)
	switch p.Protocol {
	case unix.IPPROTO_TCP:
		socket, err = net.Listen("tcp"+version, at)
	case unix.IPPROTO_UDP:
		socket, err = net.ListenPacket("udp"+version, at)
	default: // Go has no sockets of the others: that the address is the machine's is all there is to ask
		socket, err = net.ListenPacket("udp"+version, netip.AddrPortFrom(p.on(f), 0).String())
	}
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("%w by a process of the machine", ErrPortInUse)
	case err != nil:
		return err
	}
	return socket.Close()
}

// openPorts leads the endpoint's host ports to it, or none of them.
func (n *Network) openPorts(endpoint Endpoint) error {
	if len(endpoint.HostPorts) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, port := range endpoint.HostPorts {
		if err := n.mayOpen(port, endpoint); err != nil {
			return fmt.Errorf("host port %d: %w", port.Port, err)
		}
	}
	if err := localnet(n.config.Bridge).set(); err != nil {
		return err
	}
	next := maps.Clone(n.hostPorts)
	if next == nil {
		next = map[netip.Addr]Endpoint{}
	}
	next[endpoint.Address] = endpoint
	return n.setPorts(next)
}

// mayOpen refuses a port of a family that the pod has no address of, and one that somebody has.
func (n *Network) mayOpen(port HostPort, endpoint Endpoint) error {
	if port.Address.Is6() && !endpoint.Second.IsValid() {
		return fmt.Errorf("on %s: pods of this node have no addresses of IPv6", port.Address)
	}
	for _, f := range n.families() {
		if !port.in(f) {
			continue
		}
		if s := n.config.Ranges.services(f); s.IsValid() && s.Contains(port.on(f)) {
			return fmt.Errorf("%w: %s is an address of Services", ErrPortInUse, port.Address)
		}
		if err := port.free(f); err != nil {
			return err
		}
	}
	for address, other := range n.hostPorts {
		if address != endpoint.Address && slices.ContainsFunc(other.HostPorts, port.overlaps) {
			return fmt.Errorf("%w by the pod at %s", ErrPortInUse, address)
		}
	}
	return nil
}

// closePorts ends what openPorts began. Doing it again is no error.
func (n *Network) closePorts(endpoint Endpoint) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.hostPorts[endpoint.Address].HostPorts) == 0 {
		return nil
	}
	next := maps.Clone(n.hostPorts)
	delete(next, endpoint.Address)
	return n.setPorts(next)
}

// setPorts tells the kernel, in one transaction, and forgets flows of UDP to ports that are closed. n.mu is held.
func (n *Network) setPorts(next map[netip.Addr]Endpoint) error {
	conn, err := nft.Open()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	for _, f := range n.families() {
		rules := newRuleset(conn, f, n.portsTable())
		if len(next) == 0 {
			conn.DelTable(rules.table)
		} else if err := rules.open(n.config.Bridge, n.config.Ranges.services(f), next); err != nil {
			return fmt.Errorf("nftables table %s: %w", n.portsTable(), err)
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables table %s: %w", n.portsTable(), err)
	}
	before := n.hostPorts
	n.hostPorts = next
	for _, f := range n.families() {
		err = errors.Join(err, f.forgetFlows(f.closedPorts(before, next)))
	}
	return err
}

func (n *Network) portsTable() string { return "setpoint-" + n.config.Bridge + "-ports" }

// open makes the rules. The maps have the same keys as those of Services, without the address for ports on all addresses. An address of a
// Service that the machine has is none of those.
func (r *ruleset) open(bridge string, services netip.Prefix, pods map[netip.Addr]Endpoint) error {
	f := r.family
	everywhere := &nftables.Set{Name: "everywhere", IsMap: true, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeInetProto, nftables.TypeInetService), DataType: f.destinationType()}
	addressed := &nftables.Set{Name: "addressed", IsMap: true, Concatenation: true,
		KeyType: f.serviceKey(), DataType: f.destinationType()}
	elements := map[*nftables.Set][]nftables.SetElement{}
	var own []netip.Addr
	for _, first := range slices.SortedFunc(maps.Keys(pods), netip.Addr.Compare) {
		pod := pods[first].in(f)
		if !pod.IsValid() {
			continue
		}
		for _, port := range pods[first].HostPorts {
			if !port.in(f) {
				continue
			}
			set, key := addressed, []byte(ServiceAddress{port.Protocol, netip.AddrPortFrom(port.Address, port.Port)}.key())
			if port.everywhere() {
				set, key = everywhere, port.key()
			}
			element := nftables.SetElement{Key: key, Val: concatenated(netip.AddrPortFrom(pod, port.PodPort))}
			elements[set] = append(elements[set], element)
		}
		own = append(own, pod)
	}
	if err := errors.Join(r.addSet(addressed, elements[addressed]), r.addSet(everywhere, elements[everywhere])); err != nil {
		return err
	}
	if f.number == inet.number {
		r.keepOffLoopback(bridge)
	}
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		chain := r.conn.AddChain(&nftables.Chain{Name: name, Table: r.table, Type: nftables.ChainTypeNAT, Hooknum: hook,
			Priority: nftables.ChainPriorityRef(hostPortsPriority)})
		r.addRule(chain, append(f.loadKey(), f.lead(addressed, f.addressRegister())...)...)
		r.addRule(chain, join(f.notIn(services), loadLocalPort(), f.lead(everywhere, firstRegister))...)
	}
	return r.returnToMachine(bridge, own)
}

// key is the port as loadLocalPort loads it.
func (p HostPort) key() []byte {
	return append(binary.BigEndian.AppendUint16([]byte{p.Protocol, 0, 0, 0}, p.Port), 0, 0)
}

// loadLocalPort puts protocol and port of what is sent to an address of the machine where HostPort.key has them.
func loadLocalPort() []expr.Any {
	return append(destinationIs(expr.CmpOpEq, unix.RTN_LOCAL),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: firstRegister},
		ipfamily.LoadPort(secondRegister))
}

// notIn holds for what is sent elsewhere than to a range; for everything if there is none.
func (f family) notIn(prefix netip.Prefix) []expr.Any {
	if !prefix.IsValid() {
		return nil
	}
	return f.Match(f.Destination, expr.CmpOpNeq, prefix)
}

// lead sends a packet to where its key, which begins in the register, leads in the map.
func (f family) lead(set *nftables.Set, key uint32) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: key, DestRegister: f.addressRegister(), IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
		f.translateTo(f.addressRegister()),
	}
}

// returnToMachine gives packets a source to which the pod's answers come back: those of the machine to 127.0.0.1, and those of a
// pod to itself.
func (r *ruleset) returnToMachine(bridge string, pods []netip.Addr) error {
	chain, err := r.returnOwn(pods)
	if err != nil {
		return err
	}
	fromLoopback := append(r.family.Match(r.family.Source, expr.CmpOpEq, r.family.loopback), &expr.Masq{})
	r.addRule(chain, append(interfaceIs(expr.MetaKeyOIFNAME, bridge), fromLoopback...)...)
	return nil
}
