package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Offsets of what a frame has, in bytes: in its own header, and in that of ARP.
const (
	frameDestinationOffset = 0
	hardwareBytes          = 6
	arpSenderOffset        = 14
)

// Registers behind one that has an interface's name.
const afterName = firstRegister + unix.IFNAMSIZ/4

// beforeAll comes before translation in the bridge (br_netfilter): later a frame may have another pod's hardware address rightly.
const beforeAll = nftables.ChainPriority(-400)

// Chains and sets of the guard.
const (
	guardedSet   = "interfaces"
	senderSet    = "senders"
	secondSet    = "senders6"
	fromPodChain = "from-pod"
)

func (n *Network) guardTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyBridge, Name: "setpoint-" + n.config.Bridge + "-guard"}
}

// setGuard keeps the bridge to what pods send honestly: containers may send raw frames unless they drop that capability. A pod's
// frames go to the bridge, which routes them past the network policies, and not to another pod; IP and ARP come from the pod's own
// addresses. What claims neighbours of IPv6 is nothing to the bridge: it knows them for good. n.mu is held.
func (n *Network) setGuard(gateway netip.Addr) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	// Add, delete, add in one transaction: whatever was there before is replaced.
	conn.AddTable(n.guardTable())
	conn.DelTable(n.guardTable())
	r := &ruleset{conn: conn, table: conn.AddTable(n.guardTable())}
	err = errors.Join(conn.AddSet(r.guarded(), nil), conn.AddSet(r.senders(inet), nil), conn.AddSet(r.senders(inet6), nil))
	r.judgeFrames(macOf(gateway))
	for _, endpoint := range n.connected {
		err = errors.Join(err, r.guard(endpoint, (*nftables.Conn).SetAddElements))
	}
	err = errors.Join(err, conn.Flush())
	n.guards = err == nil
	return err
}

// guardPod begins to judge what a pod sends, before it can send. A table that somebody removed is made again.
func (n *Network) guardPod(endpoint Endpoint, gateway netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connected[endpoint.HostInterface] = endpoint
	if !n.guards {
		return nil
	}
	err := n.changeGuard(endpoint, (*nftables.Conn).SetAddElements)
	if errors.Is(err, os.ErrNotExist) {
		return n.setGuard(gateway)
	}
	return err
}

// unguardPod ends that. Doing it again is no error.
func (n *Network) unguardPod(endpoint Endpoint) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.connected, endpoint.HostInterface)
	if !n.guards || !endpoint.Address.IsValid() {
		return nil
	}
	err := n.changeGuard(endpoint, (*nftables.Conn).SetDeleteElements)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// elementChange adds elements to a set or deletes them.
type elementChange func(*nftables.Conn, *nftables.Set, []nftables.SetElement) error

func (n *Network) changeGuard(endpoint Endpoint, change elementChange) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	r := &ruleset{conn: conn, table: n.guardTable()}
	if err := errors.Join(r.guard(endpoint, change), conn.Flush()); err != nil {
		return fmt.Errorf("nftables table %s: %w", r.table.Name, err)
	}
	return nil
}

func (r *ruleset) guarded() *nftables.Set {
	return &nftables.Set{Table: r.table, Name: guardedSet, KeyType: nftables.TypeIFName, KeyByteOrder: binaryutil.NativeEndian}
}

func (r *ruleset) senders(f family) *nftables.Set {
	name := senderSet
	if f.number == inet6.number {
		name = secondSet
	}
	return &nftables.Set{Table: r.table, Name: name, Concatenation: true, KeyType: nftables.MustConcatSetType(nftables.TypeIFName, f.Key)}
}

// guard adds or deletes what the sets have of a pod.
func (r *ruleset) guard(endpoint Endpoint, change elementChange) error {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, endpoint.HostInterface)
	sender := func(f family, address netip.Addr) error {
		return change(r.conn, r.senders(f), []nftables.SetElement{{Key: append(name[:unix.IFNAMSIZ:unix.IFNAMSIZ], address.AsSlice()...)}})
	}
	err := errors.Join(change(r.conn, r.guarded(), []nftables.SetElement{{Key: name}}), sender(inet, endpoint.Address))
	if endpoint.Second.IsValid() {
		err = errors.Join(err, sender(inet6, endpoint.Second))
	}
	return err
}

// judgeFrames makes the rules. bridge is the hardware address to which pods send.
func (r *ruleset) judgeFrames(bridge net.HardwareAddr) {
	fromPod := r.conn.AddChain(&nftables.Chain{Name: fromPodChain, Table: r.table})
	drop := &expr.Verdict{Kind: expr.VerdictDrop}
	r.addRule(fromPod, append(unicast(expr.CmpOpEq), &expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: bridge}, drop)...)
	for protocol, offset := range map[uint16]uint32{unix.ETH_P_IP: inet.Source, unix.ETH_P_ARP: arpSenderOffset} {
		r.addRule(fromPod, join(protocolIs(protocol), r.fromOthers(inet, offset), []expr.Any{drop})...)
	}
	// Addresses that are good on the link only are not routed, nor is the unspecified one, by which a link begins.
	routed := join(inet6.Match(inet6.Source, expr.CmpOpNeq, linkLocal), inet6.Match(inet6.Source, expr.CmpOpNeq, nobody))
	r.addRule(fromPod, join(protocolIs(unix.ETH_P_IPV6), routed, r.fromOthers(inet6, inet6.Source), []expr.Any{drop})...)
	prerouting := r.conn.AddChain(&nftables.Chain{Name: "prerouting", Table: r.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(beforeAll)})
	r.addRule(prerouting, append(fromGuarded(), &expr.Verdict{Kind: expr.VerdictJump, Chain: fromPodChain})...)
	// A frame to everybody reaches the machine; other pods would take a packet out of it, and need none of them.
	forward := r.conn.AddChain(&nftables.Chain{Name: "forward", Table: r.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityRef(beforeAll)})
	r.addRule(forward, append(append(fromGuarded(), unicast(expr.CmpOpNeq)...), drop)...)
}

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	nobody    = netip.PrefixFrom(inet6.unspecified, 128)
)

// fromOthers holds for packets whose sender is not one of the interface's pod; offset is where they have it.
func (r *ruleset) fromOthers(f family, offset uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: firstRegister},
		f.Load(afterName, offset),
		&expr.Lookup{SourceRegister: firstRegister, SetName: r.senders(f).Name, Invert: true},
	}
}

func fromGuarded() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: firstRegister},
		&expr.Lookup{SourceRegister: firstRegister, SetName: guardedSet},
	}
}

func protocolIs(ether uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: firstRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: binaryutil.BigEndian.PutUint16(ether)},
	}
}

// unicast holds for frames to one address (CmpOpEq) or to several; the destination is loaded then.
func unicast(op expr.CmpOp) []expr.Any {
	destination := &expr.Payload{
		DestRegister: firstRegister, Base: expr.PayloadBaseLLHeader, Offset: frameDestinationOffset, Len: hardwareBytes,
	}
	return []expr.Any{
		destination,
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: hardwareBytes,
			Mask: []byte{1, 0, 0, 0, 0, 0}, Xor: make([]byte, hardwareBytes)},
		&expr.Cmp{Op: op, Register: firstRegister, Data: make([]byte, hardwareBytes)},
		destination,
	}
}

func (n *Network) removeGuard() error {
	conn, err := nftables.New()
	if err != nil {
		return nil // a machine without nftables has no table of ours
	}
	conn.DelTable(n.guardTable())
	if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("nftables table %s: %w", n.guardTable().Name, err)
	}
	return nil
}
