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
)

// ErrPortInUse says that a host port belongs to a process of the machine or to another pod.
var ErrPortInUse = errors.New("the host port is in use")

// HostPort leads what is sent to a port of the machine to a pod's port.
type HostPort struct {
	// Protocol is IANA's number.
	Protocol uint8
	// Address is one of the machine's; unspecified or invalid means all of them, loopback too.
	Address netip.Addr
	Port    uint16
	PodPort uint16
}

func (p HostPort) everywhere() bool { return !p.Address.IsValid() || p.Address.IsUnspecified() }

// on is the address, unspecified for all of them.
func (p HostPort) on() netip.Addr {
	if p.everywhere() {
		return netip.IPv4Unspecified()
	}
	return p.Address
}

func (p HostPort) overlaps(q HostPort) bool {
	return p.Protocol == q.Protocol && p.Port == q.Port && (p.everywhere() || q.everywhere() || p.Address == q.Address)
}

// free asks the machine: a process that listens there would no longer be reached.
func (p HostPort) free() error {
	at := netip.AddrPortFrom(p.on(), p.Port).String()
	var (
		socket io.Closer
		err    error
	)
	switch p.Protocol {
	case unix.IPPROTO_TCP:
		socket, err = net.Listen("tcp4", at)
	case unix.IPPROTO_UDP:
		socket, err = net.ListenPacket("udp4", at)
	default: // Go has no sockets of the others: that the address is the machine's is all there is to ask
		socket, err = net.ListenPacket("udp4", netip.AddrPortFrom(p.on(), 0).String())
	}
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("host port %d: %w by a process of the machine", p.Port, ErrPortInUse)
	case err != nil:
		return fmt.Errorf("host port %d: %w", p.Port, err)
	}
	return socket.Close()
}

// openPorts leads the endpoint's host ports to it, or none of them.
func (n *Network) openPorts(endpoint Endpoint) error {
	if len(endpoint.HostPorts) == 0 {
		return nil
	}
	for _, port := range endpoint.HostPorts {
		if port.Address.IsValid() && !port.Address.Is4() {
			return fmt.Errorf("host port %d on %s: this network has IPv4 only", port.Port, port.Address)
		}
		if err := port.free(); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for address, ports := range n.hostPorts {
		for _, port := range endpoint.HostPorts {
			if address != endpoint.Address && slices.ContainsFunc(ports, port.overlaps) {
				return fmt.Errorf("host port %d: %w by the pod at %s", port.Port, ErrPortInUse, address)
			}
		}
	}
	// Replies to what the machine itself sends to 127.0.0.1 come through the bridge; pods' own packets to there are dropped.
	if err := sysctl("net/ipv4/conf/"+n.config.Bridge+"/route_localnet", "1"); err != nil {
		return err
	}
	next := maps.Clone(n.hostPorts)
	if next == nil {
		next = map[netip.Addr][]HostPort{}
	}
	next[endpoint.Address] = endpoint.HostPorts
	return n.setPorts(next)
}

// closePorts ends what openPorts began. Doing it again is no error.
func (n *Network) closePorts(endpoint Endpoint) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.hostPorts[endpoint.Address]) == 0 {
		return nil
	}
	next := maps.Clone(n.hostPorts)
	delete(next, endpoint.Address)
	return n.setPorts(next)
}

// setPorts tells the kernel, in one transaction, and forgets flows of UDP to ports that are closed. n.mu is held.
func (n *Network) setPorts(next map[netip.Addr][]HostPort) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	rules := newRuleset(conn, n.portsTable())
	if len(next) == 0 {
		conn.DelTable(rules.table)
	} else if err := rules.open(n.config.Bridge, next); err != nil {
		return fmt.Errorf("nftables table %s: %w", rules.table.Name, err)
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables table %s: %w", rules.table.Name, err)
	}
	before := n.hostPorts
	n.hostPorts = next
	return forgetFlows(closedPorts(before, next))
}

func (n *Network) portsTable() string { return "setpoint-" + n.config.Bridge + "-ports" }

// open makes the rules. The maps have the same keys as those of Services, without the address for ports on all addresses.
func (r *ruleset) open(bridge string, ports map[netip.Addr][]HostPort) error {
	everywhere := &nftables.Set{Name: "everywhere", IsMap: true, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeInetProto, nftables.TypeInetService), DataType: destinationType()}
	addressed := &nftables.Set{Name: "addressed", IsMap: true, Concatenation: true,
		KeyType: serviceKey(), DataType: destinationType()}
	elements := map[*nftables.Set][]nftables.SetElement{}
	var pods []netip.Addr
	for _, pod := range slices.SortedFunc(maps.Keys(ports), netip.Addr.Compare) {
		for _, port := range ports[pod] {
			set, key := addressed, []byte(ServiceAddress{port.Protocol, netip.AddrPortFrom(port.Address, port.Port)}.key())
			if port.everywhere() {
				set, key = everywhere, port.key()
			}
			element := nftables.SetElement{Key: key, Val: concatenated(netip.AddrPortFrom(pod, port.PodPort))}
			elements[set] = append(elements[set], element)
		}
		pods = append(pods, pod)
	}
	if err := errors.Join(r.addSet(addressed, elements[addressed]), r.addSet(everywhere, elements[everywhere])); err != nil {
		return err
	}
	r.keepOffLoopback(bridge)
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		chain := r.conn.AddChain(&nftables.Chain{Name: name, Table: r.table, Type: nftables.ChainTypeNAT, Hooknum: hook,
			Priority: nftables.ChainPriorityNATDest})
		r.addRule(chain, append(loadKey(), lead(addressed)...)...)
		r.addRule(chain, append(loadLocalPort(), lead(everywhere)...)...)
	}
	return r.returnToMachine(bridge, pods)
}

// key is the port as loadLocalPort loads it.
func (p HostPort) key() []byte {
	return append(binary.BigEndian.AppendUint16([]byte{p.Protocol, 0, 0, 0}, p.Port), 0, 0)
}

// loadLocalPort puts protocol and port of what is sent to an address of the machine where HostPort.key has them.
func loadLocalPort() []expr.Any {
	return append(destinationIs(expr.CmpOpEq, unix.RTN_LOCAL),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: firstRegister},
		&expr.Payload{DestRegister: secondRegister, Base: expr.PayloadBaseTransportHeader, Offset: destinationPortOffset, Len: portBytes})
}

// lead sends a packet to where its key, which is loaded, leads in the map.
func lead(set *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: firstRegister, DestRegister: firstRegister, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
		translateTo(firstRegister),
	}
}

// returnToMachine gives packets a source to which the pod's answers come back: those of the machine to 127.0.0.1, and those of a
// pod to itself.
func (r *ruleset) returnToMachine(bridge string, pods []netip.Addr) error {
	chain, err := r.returnOwn(pods)
	if err != nil {
		return err
	}
	fromLoopback := append(matchPrefix(sourceOffset, expr.CmpOpEq, loopback), &expr.Masq{})
	r.addRule(chain, append(interfaceIs(expr.MetaKeyOIFNAME, bridge), fromLoopback...)...)
	return nil
}
