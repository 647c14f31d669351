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
	chain := r.conn.AddChain(&nftables.Chain{Name: s.name(), Table: r.table})
	if s.affinity > 0 {
		r.addRule(chain, s.stay()...)
		r.addRule(chain, s.remember()...)
	}
	r.addRule(chain, append(s.draw(), translateTo(indexRegister))...)
}

// draw takes any endpoint: it is in the registers from indexRegister on.
func (s spread) draw() []expr.Any {
	return append(s.load(),
		&expr.Numgen{Register: indexRegister, Modulus: uint32(s.count), Type: unix.NFT_NG_RANDOM, Offset: s.offset()},
		&expr.Lookup{SourceRegister: firstRegister, DestRegister: indexRegister, IsDestRegSet: true, SetName: endpointsMap(s.count)})
}

func (s spread) load() []expr.Any {
	if s.everywhere {
		return loadPortKey()
	}
	return loadKey()
}

func (s spread) stay() []expr.Any {
	members := membersSet
	if s.outside {
		members = outsideMembers
	}
	return append(append([]expr.Any{loadSource(sourceRegister)}, s.load()...),
		&expr.Lookup{SourceRegister: sourceRegister, DestRegister: indexRegister, IsDestRegSet: true, SetName: affinityMap},
		&expr.Lookup{SourceRegister: firstRegister, SetName: members},
		s.affinityOperation(unix.NFT_DYNSET_OP_UPDATE),
		translateTo(indexRegister))
}

func (s spread) remember() []expr.Any {
	return append(append(s.draw(), loadSource(sourceRegister)),
		s.affinityOperation(forgetOperation), s.affinityOperation(unix.NFT_DYNSET_OP_UPDATE), translateTo(indexRegister))
}

func (s spread) affinityOperation(operation uint32) expr.Any {
	return &expr.Dynset{SrcRegKey: sourceRegister, SrcRegData: indexRegister, SetName: affinityMap, Operation: operation, Timeout: s.affinity}
}

func affinitySet(table *nftables.Table) *nftables.Set {
	return &nftables.Set{Table: table, Name: affinityMap, IsMap: true, Concatenation: true, Dynamic: true, HasTimeout: true, Size: affinityMax,
		KeyType:  nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: destinationType()}
}
