package network

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	// outsideOffset keeps the endpoints for what comes from outside apart from the others of the same Service.
	outsideOffset = 1 << 16
	// nameBytes of a hash tell chains of different endpoints apart, also those that somebody makes up to get the name of another's, as
	// agent/net/policy/plan's. The name stays far below the 255 bytes that the kernel allows.
	nameBytes = 16
)

// spread is a chain that leads to one of count endpoints. All Services with the same number of endpoints and the same kind of address
// share it; where clients stay with their endpoint, those with the same endpoints, which are in stay. A chain for 0 endpoints drops.
type spread struct {
	everywhere, outside bool
	count               int
	affinity            time.Duration
	stay                string // the endpoints, as concatenated has them, one behind the other
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
		sum := sha256.Sum256([]byte(s.stay))
		name += fmt.Sprintf("-%ds-%x", int(s.affinity.Seconds()), sum[:nameBytes])
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
func (s spread) elements(verdicts, key string, endpoints []netip.AddrPort) []element {
	elements := []element{{set: verdicts, key: key, chain: s}}
	for i, endpoint := range endpoints {
		index := binary.NativeEndian.AppendUint32(nil, s.offset()+uint32(i))
		elements = append(elements, element{set: endpointsMap(s.count), key: key + string(index), value: string(concatenated(endpoint))})
	}
	return elements
}

func (s spread) offset() uint32 {
	if s.outside {
		return outsideOffset
	}
	return 0
}

// addSpread makes the chain. Where clients stay with their endpoint, rules for those come first; see affinity.go.
func (r *ruleset) addSpread(s spread) {
	chain, f := r.conn.AddChain(&nftables.Chain{Name: s.name(), Table: r.table}), r.family
	if s.affinity > 0 {
		r.addAffinity(chain, s)
	}
	r.addRule(chain, append(s.draw(f), f.translateTo(f.indexRegister()))...)
}

// removeSpread removes the chain: no element leads there any more.
func (r *ruleset) removeSpread(s spread) {
	r.rules -= s.rules()
	r.conn.DelChain(&nftables.Chain{Name: s.name(), Table: r.table})
}

// rules are how many addSpread makes.
func (s spread) rules() int {
	if s.affinity > 0 {
		return 2*s.count + 1
	}
	return 1
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
