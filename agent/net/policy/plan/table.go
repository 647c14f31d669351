package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
)

// Table is what a node enforces. Its values are sorted, have nothing twice, and are not changed after it was made.
type Table struct {
	// Ingress and Egress name the chain of each pod of this node that policies select for that direction.
	Ingress, Egress map[netip.Addr]string
	// Chains have rules by name. A packet that none of them matches is dropped.
	Chains map[string][]Rule
	// Pods, Blocks and Ports are the sets that rules name.
	Pods   map[string][]netip.Addr
	Blocks map[string][]Block
	Ports  map[string][]Port
}

// Of is what concerns one family: rules are the same, and their sets have that family's addresses.
func (t *Table) Of(has func(netip.Addr) bool) *Table {
	part := &Table{
		Ingress: chainsOf(t.Ingress, has), Egress: chainsOf(t.Egress, has), Chains: t.Chains,
		Pods: map[string][]netip.Addr{}, Blocks: map[string][]Block{}, Ports: map[string][]Port{},
	}
	for name, all := range t.Pods {
		part.Pods[name] = only(all, has)
	}
	for name, all := range t.Blocks {
		part.Blocks[name] = only(all, func(b Block) bool { return has(b.First) })
	}
	for name, all := range t.Ports {
		part.Ports[name] = only(all, func(p Port) bool { return has(p.Address) })
	}
	return part
}

func chainsOf(chains map[netip.Addr]string, has func(netip.Addr) bool) map[netip.Addr]string {
	some := map[netip.Addr]string{}
	for pod, chain := range chains {
		if has(pod) {
			some[pod] = chain
		}
	}
	return some
}

func only[T any](all []T, keep func(T) bool) (some []T) {
	for _, one := range all {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

// Rule lets packets through that match all of its fields.
type Rule struct {
	// Pods or Blocks, if one is named, has the other end: who sends, in a chain of Ingress.
	Pods, Blocks string
	// Protocol is IANA's number; 0 is any, whatever the port.
	Protocol uint8
	// First and Last are the ports of the receiving end; 0 and 0 are all.
	First, Last uint16
	// Ports, if named, has the receiving end with its protocol and port; Protocol is 0 then.
	Ports string
}

// Block is a range of addresses.
type Block struct{ First, Last netip.Addr }

// Port is one port of one pod.
type Port struct {
	Address  netip.Addr
	Protocol uint8
	Number   uint16
}

// Compare orders ports.
func (p Port) Compare(q Port) int {
	return cmp.Or(p.Address.Compare(q.Address), cmp.Compare(p.Protocol, q.Protocol), cmp.Compare(p.Number, q.Number))
}

// Compare orders blocks.
func (b Block) Compare(c Block) int { return cmp.Or(b.First.Compare(c.First), b.Last.Compare(c.Last)) }

// Packet begins a connection, as it arrives: the address of a Service has become a pod's.
type Packet struct {
	From, To netip.Addr
	Protocol uint8
	Port     uint16 // of the receiving end; 0 where the protocol has none
}

// Allows tells what the kernel does with a packet. It reads rules as agent/net/policy/table writes them.
func (t *Table) Allows(p Packet) bool {
	if p.From == p.To {
		return true
	}
	if chain, isolated := t.Egress[p.From]; isolated && !t.chainAllows(chain, p, p.To) {
		return false
	}
	chain, isolated := t.Ingress[p.To]
	return !isolated || t.chainAllows(chain, p, p.From)
}

func (t *Table) chainAllows(chain string, p Packet, peer netip.Addr) bool {
	return slices.ContainsFunc(t.Chains[chain], func(r Rule) bool { return t.matches(r, p, peer) })
}

func (t *Table) matches(r Rule, p Packet, peer netip.Addr) bool {
	if r.Pods != "" {
		if _, found := slices.BinarySearchFunc(t.Pods[r.Pods], peer, netip.Addr.Compare); !found {
			return false
		}
	}
	inside := func(b Block) bool { return b.First.Compare(peer) <= 0 && peer.Compare(b.Last) <= 0 }
	if r.Blocks != "" && !slices.ContainsFunc(t.Blocks[r.Blocks], inside) {
		return false
	}
	if r.Ports != "" {
		_, found := slices.BinarySearchFunc(t.Ports[r.Ports], Port{p.To, p.Protocol, p.Port}, Port.Compare)
		return found
	}
	if r.Protocol != 0 && r.Protocol != p.Protocol {
		return false
	}
	return r.Last == 0 || r.First <= p.Port && p.Port <= r.Last
}

// blocksOf turns a range without some of its parts into blocks.
func blocksOf(cidr netip.Prefix, except []netip.Prefix) []Block {
	var blocks []Block
	next, end := ipfamily.Bounds(cidr)
	slices.SortFunc(except, func(a, b netip.Prefix) int { return a.Masked().Addr().Compare(b.Masked().Addr()) })
	for _, e := range except {
		if !e.Overlaps(cidr) || !next.IsValid() {
			continue
		}
		first, last := ipfamily.Bounds(e)
		if next.Less(first) {
			blocks = append(blocks, Block{next, first.Prev()})
		}
		if !last.Less(next) {
			next = last.Next() // invalid behind the last address there is
		}
	}
	if next.IsValid() && !end.Less(next) {
		blocks = append(blocks, Block{next, end})
	}
	return blocks
}

// merged sorts blocks and joins those of one family that overlap or touch.
func merged(blocks []Block) []Block {
	slices.SortFunc(blocks, Block.Compare)
	var out []Block
	for _, b := range blocks {
		if n := len(out); n > 0 && out[n-1].reaches(b) {
			if out[n-1].Last.Less(b.Last) {
				out[n-1].Last = b.Last
			}
			continue
		}
		out = append(out, b)
	}
	return out
}

// reaches reports whether c, which begins later, overlaps or touches.
func (b Block) reaches(c Block) bool {
	behind := b.Last.Next()
	return b.Last.BitLen() == c.First.BitLen() && (!behind.IsValid() || !behind.Less(c.First))
}
