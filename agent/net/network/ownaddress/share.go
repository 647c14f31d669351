package ownaddress

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// Shares of one source in what is sent to the port: a second, and at once. What is beyond them is dropped before it reaches the socket,
// where it would take the places of others' packets. The machine itself has no share: who has its network may do more than that.
const (
	packetsEach, packetsBurst         = 1000, 2000 // of UDP
	connectionsEach, connectionsBurst = 50, 200    // of TCP, new ones
	// sourcesMax is how many sources are told apart. A further one has no share until others are forgotten.
	sourcesMax = 16384
	// sourceTime is how long a source is remembered that sends nothing: longer than a share takes to fill.
	sourceTime = time.Minute
)

const (
	shareChain     = "share"
	packetsSet     = "packets"
	connectionsSet = "connections"
)

// share is what each source has of a protocol.
type share struct {
	set      string
	protocol byte
	counts   []expr.Any // which packets count
	limit    expr.Limit
}

var shares = []share{
	{packetsSet, unix.IPPROTO_UDP, nil, over(packetsEach, packetsBurst)},
	{connectionsSet, unix.IPPROTO_TCP, begins(), over(connectionsEach, connectionsBurst)},
}

func over(rate uint64, burst uint32) expr.Limit {
	return expr.Limit{Type: expr.LimitTypePkts, Rate: rate, Burst: burst, Unit: expr.LimitTimeSecond, Over: true}
}

// begins holds for the packet of TCP that asks for a connection: of SYN, RST and ACK it has the first alone.
func begins() []expr.Any {
	const flagsOffset, syn, rst, ack = 13, 0x02, 0x04, 0x10
	return []expr.Any{
		&expr.Payload{DestRegister: ipfamily.FirstRegister, Base: expr.PayloadBaseTransportHeader, Offset: flagsOffset, Len: 1},
		&expr.Bitwise{SourceRegister: ipfamily.FirstRegister, DestRegister: ipfamily.FirstRegister, Len: 1,
			Mask: []byte{syn | rst | ack}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: ipfamily.FirstRegister, Data: []byte{syn}},
	}
}

// addShares drops what is beyond them, before connection tracking sees it.
func (h *Holder) addShares(conn *nft.Conn) error {
	chain := conn.AddChain(&nftables.Chain{
		Name: shareChain, Table: table(), Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw,
	})
	for _, s := range shares {
		set := &nftables.Set{Table: table(), Name: s.set, KeyType: ipfamily.V4.Key, Dynamic: true, HasTimeout: true,
			Timeout: sourceTime, Size: sourcesMax}
		if err := conn.AddSet(set, nil); err != nil {
			return err
		}
		for _, port := range h.ports() {
			conn.AddRule(&nftables.Rule{Table: table(), Chain: chain, Exprs: h.dropBeyond(s, port)})
		}
	}
	return nil
}

// ports are those by which the listener is reached.
func (h *Holder) ports() []uint16 { return []uint16{h.from, h.to} }

// dropBeyond is the rule of a share and a port. The set counts what it has dropped of each source, the rule of all.
func (h *Holder) dropBeyond(s share, port uint16) []expr.Any {
	limit := s.limit
	exprs := append(h.sentTo(s.protocol, port), fromOutside()...)
	exprs = append(exprs, s.counts...)
	return append(exprs,
		ipfamily.V4.Load(ipfamily.FirstRegister, ipfamily.V4.Source),
		&expr.Dynset{
			SrcRegKey: ipfamily.FirstRegister, SetName: s.set, Operation: unix.NFT_DYNSET_OP_UPDATE,
			Exprs: []expr.Any{&limit, &expr.Counter{}},
		},
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
}

// fromOutside holds for what is not of this machine.
func fromOutside() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFTYPE, Register: ipfamily.FirstRegister},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: ipfamily.FirstRegister, Data: binaryutil.NativeEndian.PutUint16(unix.ARPHRD_LOOPBACK)},
	}
}

// sentTo holds for packets to the address at a port.
func (h *Holder) sentTo(protocol byte, port uint16) []expr.Any {
	const register = ipfamily.FirstRegister
	exprs := ipfamily.ProtocolIs(protocol)
	exprs = append(exprs, ipfamily.V4.Match(ipfamily.V4.Destination, expr.CmpOpEq, netip.PrefixFrom(h.wanted, h.wanted.BitLen()))...)
	return append(exprs, ipfamily.LoadPort(register),
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: binaryutil.BigEndian.PutUint16(port)})
}

// Dropped is how many packets were beyond the shares of their sources since the table was made.
func (h *Holder) Dropped() (uint64, error) {
	conn, err := nft.Open()
	if err != nil {
		return 0, err
	}
	rules, err := conn.GetRules(table(), &nftables.Chain{Name: shareChain, Table: table()})
	if err != nil {
		return 0, fmt.Errorf("shares of %s: %w", TableName, err)
	}
	return counted(rules), nil
}

func counted(rules []*nftables.Rule) (packets uint64) {
	for _, rule := range rules {
		for _, e := range rule.Exprs {
			if counter, ok := e.(*expr.Counter); ok {
				packets += counter.Packets
			}
		}
	}
	return packets
}
