package guard

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// Offsets of what a frame has, in bytes: in its own header, and in that of ARP.
const (
	frameDestinationOffset = 0
	hardwareBytes          = 6
	arpSenderOffset        = 14
)

// Registers: what is loaded into firstRegister and the one behind an interface's name is one key.
const (
	firstRegister = ipfamily.FirstRegister
	afterName     = firstRegister + unix.IFNAMSIZ/4
)

// beforeAll comes before translation in the bridge (br_netfilter): later a frame may have another pod's hardware address rightly.
const beforeAll = nftables.ChainPriority(-400)

// Chains and sets.
const (
	guardedSet      = "interfaces"
	senderSet       = "senders"
	secondSet       = "senders6"
	fromPodChain    = "from-pod"
	preroutingChain = "prerouting"
)

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	nobody    = netip.PrefixFrom(netip.IPv6Unspecified(), 128)
)

// ruleset are the tables in the making.
type ruleset struct {
	conn           *nft.Conn
	table, machine *nftables.Table
}

// podSet is a set, and what it has of a pod.
type podSet struct {
	set  *nftables.Set
	keys func(Pod) [][]byte
}

func (s podSet) elements(pods []Pod) (all []nftables.SetElement) {
	for _, pod := range pods {
		for _, key := range s.keys(pod) {
			all = append(all, nftables.SetElement{Key: key})
		}
	}
	return all
}

// all are the sets: the interfaces that are judged, and the senders that each of them may have.
func (r *ruleset) all() []podSet {
	return []podSet{
		guarded(r.table), guarded(r.machine),
		r.senders(ipfamily.V4, senderSet), r.senders(ipfamily.V6, secondSet),
	}
}

func guarded(table *nftables.Table) podSet {
	set := &nftables.Set{Table: table, Name: guardedSet, KeyType: nftables.TypeIFName, KeyByteOrder: binaryutil.NativeEndian}
	return podSet{set, func(p Pod) [][]byte { return [][]byte{p.name()} }}
}

func (r *ruleset) senders(f ipfamily.Family, name string) podSet {
	set := &nftables.Set{Table: r.table, Name: name, Concatenation: true, KeyType: nftables.MustConcatSetType(nftables.TypeIFName, f.Key)}
	return podSet{set, func(p Pod) (keys [][]byte) {
		for _, address := range p.Addresses {
			if f.Has(address) {
				keys = append(keys, slices.Concat(p.name(), address.AsSlice()))
			}
		}
		return keys
	}}
}

// name is the interface's as a key has it.
func (p Pod) name() []byte {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, p.Interface)
	return name
}

func (r *ruleset) sets(pods []Pod) (err error) {
	for _, s := range r.all() {
		err = errors.Join(err, r.conn.AddSet(s.set, s.elements(pods)))
	}
	return err
}

// judge makes the rules. bridge is the hardware address to which pods send.
func (r *ruleset) judge(bridge net.HardwareAddr) {
	fromPod := r.conn.AddChain(&nftables.Chain{Name: fromPodChain, Table: r.table})
	drop := &expr.Verdict{Kind: expr.VerdictDrop}
	r.add(fromPod, unicast(expr.CmpOpEq), []expr.Any{&expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: bridge}, drop})
	four, six := ipfamily.V4, ipfamily.V6
	for protocol, offset := range map[uint16]uint32{unix.ETH_P_IP: four.Source, unix.ETH_P_ARP: arpSenderOffset} {
		r.add(fromPod, protocolIs(protocol), fromOthers(four, offset, senderSet), []expr.Any{drop})
	}
	// Addresses that are good on the link only are not routed, nor is the unspecified one, by which a link begins.
	r.add(fromPod, protocolIs(unix.ETH_P_IPV6), six.Match(six.Source, expr.CmpOpNeq, linkLocal), six.Match(six.Source, expr.CmpOpNeq, nobody),
		fromOthers(six, six.Source, secondSet), []expr.Any{drop})
	r.add(fromPod, protocolIsNone(unix.ETH_P_IP, unix.ETH_P_ARP, unix.ETH_P_IPV6), []expr.Any{drop})
	prerouting := r.chain(preroutingChain, nftables.ChainHookPrerouting)
	r.add(prerouting, fromGuarded(), []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: fromPodChain}})
	// A frame to everybody reaches the machine; other pods would take a packet out of it, and need none of them.
	r.add(r.chain("forward", nftables.ChainHookForward), fromGuarded(), unicast(expr.CmpOpNeq), []expr.Any{drop})
	// A bridge hands frames to groups of switches to its port past its own path, and past all rules about bridges: what is in them seems
	// to come by the machine's end of the pod's interface, by which nothing else comes.
	machine := r.conn.AddChain(&nftables.Chain{Name: preroutingChain, Table: r.machine, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw})
	r.add(machine, fromGuarded(), []expr.Any{drop})
}

func (r *ruleset) chain(name string, hook *nftables.ChainHook) *nftables.Chain {
	return r.conn.AddChain(&nftables.Chain{Name: name, Table: r.table, Type: nftables.ChainTypeFilter,
		Hooknum: hook, Priority: nftables.ChainPriorityRef(beforeAll)})
}

func (r *ruleset) add(chain *nftables.Chain, parts ...[]expr.Any) {
	r.conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: slices.Concat(parts...)})
}

// fromOthers holds for packets whose sender is not one of the interface's pod; offset is where they have it.
func fromOthers(f ipfamily.Family, offset uint32, set string) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: firstRegister},
		f.Load(afterName, offset),
		&expr.Lookup{SourceRegister: firstRegister, SetName: set, Invert: true},
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

// protocolIsNone holds for frames of other protocols. These may be inside, in as many tags for virtual networks as a pod likes: a bridge
// takes one off before the rules, and the machine takes off the rest behind them.
func protocolIsNone(ethers ...uint16) []expr.Any {
	all := []expr.Any{&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: firstRegister}}
	for _, ether := range ethers {
		all = append(all, &expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: binaryutil.BigEndian.PutUint16(ether)})
	}
	return all
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
