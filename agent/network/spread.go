package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	affinityMap = "affinity"
	// affinityMax is how many clients of Services with session affinity are remembered; further ones go to any endpoint.
	affinityMax = 1 << 17
	// outsideOffset keeps the endpoints for what comes from outside apart from the others of the same Service.
	outsideOffset = 1 << 16
	// forgetOperation of dynamic sets is missing in x/sys.
	forgetOperation = 2
)

// spread is a chain that leads to one of count endpoints. All Services with the same number of endpoints, the same affinity and
// the same kind of address share it. A chain for 0 endpoints drops.
type spread struct {
	everywhere, outside bool
	count               int
	affinity            time.Duration
}

func (s spread) name() string {
	name := fmt.Sprintf("to-%d", s.count)
	if s.everywhere {
		name = "port-" + name
	}
	if s.outside {
		name = "outside-" + name
	}
	if s.affinity > 0 {
		name += fmt.Sprintf("-%ds", int(s.affinity.Seconds()))
	}
	return name
}

func (s spread) verdict() *expr.Verdict {
	if s.count == 0 {
		return &expr.Verdict{Kind: expr.VerdictDrop}
	}
	return &expr.Verdict{Kind: expr.VerdictGoto, Chain: s.name()}
}

func endpointsMap(count int) string { return fmt.Sprintf("endpoints-%d", count) }

// elements lead from a Service's key to the chain, and from there to the endpoints.
func (s spread) elements(verdicts, members, key string, endpoints []netip.AddrPort) []element {
	elements := []element{{set: verdicts, key: key, chain: s}}
	for i, endpoint := range endpoints {
		index := binary.NativeEndian.AppendUint32(nil, s.offset()+uint32(i))
		value := string(concatenated(endpoint))
		elements = append(elements, element{set: endpointsMap(s.count), key: key + string(index), value: value})
		if s.affinity > 0 {
			elements = append(elements, element{set: members, key: key + value})
		}
	}
	return elements
}

func (s spread) offset() uint32 {
	if s.outside {
		return outsideOffset
	}
	return 0
}

// addSpread makes the chain. Where clients stay with their endpoint, the first rule looks the client up, and the second one is for
// clients that are new or whose endpoint is gone. The last one needs no memory.
func (r *ruleset) addSpread(s spread) {
	chain, f := r.conn.AddChain(&nftables.Chain{Name: s.name(), Table: r.table}), r.family
	if s.affinity > 0 {
		r.addRule(chain, s.stay(f)...)
		r.addRule(chain, s.remember(f)...)
	}
	r.addRule(chain, append(s.draw(f), f.translateTo(f.indexRegister()))...)
}

// draw takes any endpoint: it is in the registers from the index's on.
func (s spread) draw(f family) []expr.Any {
	return append(s.load(f),
		&expr.Numgen{Register: f.indexRegister(), Modulus: uint32(s.count), Type: unix.NFT_NG_RANDOM, Offset: s.offset()},
		&expr.Lookup{
			SourceRegister: f.addressRegister(), DestRegister: f.indexRegister(), IsDestRegSet: true, SetName: endpointsMap(s.count),
		})
}

func (s spread) load(f family) []expr.Any {
	if s.everywhere {
		return f.loadPortKey()
	}
	return f.loadKey()
}

func (s spread) stay(f family) []expr.Any {
	members := membersSet
	if s.outside {
		members = outsideMembers
	}
	return append(append([]expr.Any{f.loadSource(f.sourceRegister())}, s.load(f)...),
		&expr.Lookup{SourceRegister: f.sourceRegister(), DestRegister: f.indexRegister(), IsDestRegSet: true, SetName: affinityMap},
		&expr.Lookup{SourceRegister: f.addressRegister(), SetName: members},
		s.affinityOperation(f, unix.NFT_DYNSET_OP_UPDATE),
		f.translateTo(f.indexRegister()))
}

func (s spread) remember(f family) []expr.Any {
	return append(append(s.draw(f), f.loadSource(f.sourceRegister())), s.affinityOperation(f, forgetOperation),
		s.affinityOperation(f, unix.NFT_DYNSET_OP_UPDATE), f.translateTo(f.indexRegister()))
}

func (s spread) affinityOperation(f family, operation uint32) expr.Any {
	return &expr.Dynset{
		SrcRegKey: f.sourceRegister(), SrcRegData: f.indexRegister(), SetName: affinityMap, Operation: operation, Timeout: s.affinity,
	}
}

func (r *ruleset) affinitySet() *nftables.Set {
	return &nftables.Set{
		Table: r.table, Name: affinityMap, IsMap: true, Concatenation: true, Dynamic: true, HasTimeout: true, Size: affinityMax,
		KeyType:  nftables.MustConcatSetType(r.family.Key, r.family.Key, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: r.family.destinationType(),
	}
}
