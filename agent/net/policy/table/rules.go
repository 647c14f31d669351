package table

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// Offsets in the headers of TCP, UDP and SCTP, in bytes.
const (
	sourcePortOffset      = 0
	destinationPortOffset = 2
	portBytes             = 2
)

// way is a direction of connections: where a packet of it has who began the connection, and whom it reached. Both ends are
// pods here and not Services: addresses are translated before and behind the hook of forwarding.
type way struct {
	suffix                         string // of chains and maps
	direction                      byte   // as connection tracking numbers it
	sender, receiver, receiverPort uint32 // offsets
	family                         family
}

func (f family) ways() []way {
	return []way{
		{"", 0, f.Source, f.Destination, destinationPortOffset, f},
		{"-back", 1, f.Destination, f.Source, sourcePortOffset, f},
	}
}

func (r *ruleset) addressSet(name string) *nftables.Set {
	return &nftables.Set{Table: r.table, Name: name, KeyType: r.family.Key}
}

func (r *ruleset) blockSet(name string) *nftables.Set {
	return &nftables.Set{Table: r.table, Name: name, KeyType: r.family.Key, Interval: true}
}

func (r *ruleset) portSet(name string) *nftables.Set {
	return &nftables.Set{Table: r.table, Name: name, Concatenation: true,
		KeyType: nftables.MustConcatSetType(r.family.Key, nftables.TypeInetProto, nftables.TypeInetService)}
}

func (r *ruleset) pairSet() *nftables.Set {
	return &nftables.Set{Table: r.table, Name: itselfSet, Concatenation: true, KeyType: nftables.MustConcatSetType(r.family.Key, r.family.Key)}
}

func (r *ruleset) verdictMap(name string) *nftables.Set {
	return &nftables.Set{Table: r.table, Name: name, IsMap: true, KeyType: r.family.Key, DataType: nftables.TypeVerdict}
}

func verdictElement(pod netip.Addr, chain string) nftables.SetElement {
	return nftables.SetElement{Key: pod.AsSlice(), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}
}

// fixed are the sets that are always there.
func (r *ruleset) fixed() []*nftables.Set {
	sets := []*nftables.Set{r.addressSet(isolatedSet), r.pairSet()}
	for _, w := range r.family.ways() {
		sets = append(sets, r.verdictMap(ingressMap+w.suffix), r.verdictMap(egressMap+w.suffix))
	}
	return sets
}

// forward judges what the machine forwards: who sends must be allowed to, and who receives must be allowed to receive. A chain
// that finds no reason to drop returns.
func (r *ruleset) forward() {
	chain := r.conn.AddChain(&nftables.Chain{Name: forwardChain, Table: r.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	f := r.family
	for _, offset := range []uint32{f.Source, f.Destination} {
		r.addRule(chain, append(ipfamily.InState(expr.CtStateBitINVALID|expr.CtStateBitUNTRACKED),
			f.Load(firstRegister, offset), in(isolatedSet), verdict(expr.VerdictDrop))...)
	}
	// What routers tell of a connection that was let through: that a packet was too large for a path, for one.
	r.addRule(chain, append(append(ipfamily.InState(expr.CtStateBitRELATED), ipfamily.ProtocolIs(f.icmp)...), verdict(expr.VerdictAccept))...)
	r.addRule(chain, f.Load(firstRegister, f.Source), f.Load(f.behindAddress(), f.Destination),
		in(itselfSet), verdict(expr.VerdictAccept))
	for _, w := range r.family.ways() {
		for offset, name := range map[uint32]string{w.sender: egressMap, w.receiver: ingressMap} {
			r.addRule(chain, append(w.is(), f.Load(firstRegister, offset),
				&expr.Lookup{SourceRegister: firstRegister, IsDestRegSet: true, SetName: name + w.suffix})...)
		}
	}
}

func (w way) is() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeyDIRECTION, Register: firstRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: []byte{w.direction}},
	}
}

func in(set string) expr.Any { return &expr.Lookup{SourceRegister: firstRegister, SetName: set} }

func verdict(kind expr.VerdictKind) expr.Any { return &expr.Verdict{Kind: kind} }

// addChain makes the two chains of the pods that have these rules.
func (r *ruleset) addChain(name string, rules []plan.Rule, ofIngress bool) {
	for _, w := range r.family.ways() {
		peer := w.receiver
		if ofIngress {
			peer = w.sender
		}
		chain := r.conn.AddChain(&nftables.Chain{Name: name + w.suffix, Table: r.table})
		for _, rule := range rules {
			r.addRule(chain, append(w.match(rule, peer), verdict(expr.VerdictReturn))...)
		}
		r.addRule(chain, verdict(expr.VerdictDrop))
	}
}

// chainNames are those that addChain made.
func chainNames(t *plan.Table) (all []string) {
	for name := range t.Chains {
		for _, w := range inet.ways() { // their names are those of any family
			all = append(all, name+w.suffix)
		}
	}
	return all
}

func (r *ruleset) removeChain(name string) {
	for _, w := range r.family.ways() {
		chain := &nftables.Chain{Name: name + w.suffix, Table: r.table}
		r.conn.FlushChain(chain)
		r.conn.DelChain(chain)
	}
}

// match is one rule; peer is where a packet has the other end.
func (w way) match(rule plan.Rule, peer uint32) []expr.Any {
	var all []expr.Any
	for _, set := range []string{rule.Pods, rule.Blocks} {
		if set != "" {
			all = append(all, w.family.Load(firstRegister, peer), in(set))
		}
	}
	if rule.Protocol != 0 {
		all = append(all, ipfamily.ProtocolIs(rule.Protocol)...)
	}
	if rule.Last != 0 {
		all = append(all, w.port(firstRegister),
			&expr.Range{Op: expr.CmpOpEq, Register: firstRegister, FromData: number(rule.First), ToData: number(rule.Last)})
	}
	if rule.Ports != "" { // as portElements has its keys
		protocol := w.family.behindAddress()
		all = append(all, w.family.Load(firstRegister, w.receiver), &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: protocol},
			w.port(protocol+1), in(rule.Ports))
	}
	return all
}

func (w way) port(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: w.receiverPort, Len: portBytes}
}

func number(port uint16) []byte { return binary.BigEndian.AppendUint16(nil, port) }

func (r *ruleset) addRule(chain *nftables.Chain, expressions ...expr.Any) {
	r.conn.AddRule(&nftables.Rule{Table: r.table, Chain: chain, Exprs: expressions})
}
