package network

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
)

// ServiceAddress is where a Service is reached. The unspecified address stands for all addresses of the machine: a node port.
type ServiceAddress struct {
	// Protocol is IANA's number.
	Protocol uint8
	Address  netip.AddrPort
}

// Service says what happens to connections to one address. Without endpoints they are refused, or, if Silent, dropped.
type Service struct {
	ServiceAddress
	// Endpoints are for the cluster: for its pods and its machines.
	Endpoints []netip.AddrPort
	// Silent: there are endpoints, but none that this node may use.
	Silent bool
	// External says that others than the cluster's pods are expected: their source is replaced, so that answers come back this way.
	External bool
	// KeepsSource is for External ones: connections from outside keep their source and go to Outside only; without any they are dropped.
	KeepsSource bool
	Outside     []netip.AddrPort
	// Affinity is how long a client stays with its endpoint after its last connection; 0: each connection goes to any.
	Affinity time.Duration
	// Sources are the only ones that may connect; none: all may.
	Sources []netip.Prefix
	// Here are the endpoints that are pods of this node: they may be led back to themselves.
	Here []netip.Addr
}

// Equal compares all fields; the order of endpoints counts.
func (s Service) Equal(t Service) bool {
	return s.ServiceAddress == t.ServiceAddress && slices.Equal(s.Endpoints, t.Endpoints) && s.Silent == t.Silent &&
		s.External == t.External && s.KeepsSource == t.KeepsSource && slices.Equal(s.Outside, t.Outside) &&
		s.Affinity == t.Affinity && slices.Equal(s.Sources, t.Sources) && slices.Equal(s.Here, t.Here)
}

// Compare orders addresses: by address and port, then by protocol.
func (a ServiceAddress) Compare(b ServiceAddress) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Protocol, b.Protocol))
}

func (a ServiceAddress) everywhere() bool { return a.Address.Addr().IsUnspecified() }

// key is the address as loadKey or loadPortKey loads it: each part fills its register with zeros.
func (a ServiceAddress) key() string {
	key := append(a.Address.Addr().AsSlice(), a.Protocol, 0, 0, 0)
	return string(append(binary.BigEndian.AppendUint16(key, a.Address.Port()), 0, 0))
}

// The sets and maps of the table. Their keys begin with the address of a Service.
const (
	servicesMap    = "services"    // leads to the chain for the number of endpoints
	outsideMap     = "outside"     // the same, for what comes from outside and keeps its source
	refusedSet     = "refused"     // no endpoints
	silentSet      = "silent"      // no endpoints here
	masqueradedSet = "masqueraded" // external, and the source is replaced
	keepingSet     = "keeping"     // external, and the source is kept
	restrictedSet  = "restricted"  // some sources only: those in allowed
	allowedSet     = "allowed"
)

// setsByAddress are those whose keys are an address and nothing else.
var setsByAddress = []string{servicesMap, outsideMap, refusedSet, silentSet, masqueradedSet, keepingSet, restrictedSet}

// element is one of a set or map. chain is the value in maps of verdicts, value in others; end is the last key of a range.
type element struct {
	set             string
	key, end, value string
	chain           spread
}

// elements is the whole Service, as the kernel has it.
func (s Service) elements() []element {
	key := s.key()
	var elements []element
	in := func(holds bool, set string) {
		if holds {
			elements = append(elements, element{set: set, key: key})
		}
	}
	in(len(s.Endpoints) == 0 && !s.Silent, refusedSet)
	in(len(s.Endpoints) == 0 && s.Silent, silentSet)
	in(s.External && !s.KeepsSource, masqueradedSet)
	in(s.External && s.KeepsSource, keepingSet)
	in(len(s.Sources) > 0, restrictedSet)
	for _, source := range s.Sources {
		first, last := ipfamily.Bounds(source)
		elements = append(elements, element{set: allowedSet, key: key + string(first.AsSlice()), end: key + string(last.AsSlice())})
	}
	if len(s.Endpoints) > 0 {
		elements = append(elements, s.spread(false).elements(servicesMap, key, s.Endpoints)...)
	}
	if s.External && s.KeepsSource && len(s.Endpoints) > 0 {
		elements = append(elements, s.spread(true).elements(outsideMap, key, s.Outside)...)
	}
	return elements
}

func (s Service) spread(outside bool) spread {
	endpoints := s.Endpoints
	if outside {
		endpoints = s.Outside
	}
	to := spread{everywhere: s.everywhere(), outside: outside, count: len(endpoints), affinity: s.Affinity}
	if s.Affinity > 0 {
		for _, endpoint := range endpoints {
			to.stay += string(concatenated(endpoint))
		}
	}
	return to
}

// allEndpoints are those for the cluster and those for others, of flows that may go on.
func (s Service) allEndpoints() []netip.AddrPort {
	return slices.Concat(s.Endpoints, s.Outside)
}

func (s Service) isUDP() bool { return s.Protocol == unix.IPPROTO_UDP }
