package cpus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// Options are cpuManagerPolicyOptions.
type Options struct {
	// FullPCPUsOnly gives cores as a whole, and no containers that ask for parts of one a place.
	FullPCPUsOnly bool
	// DistributeAcrossNUMA takes the same number from each NUMA node if one is not enough.
	DistributeAcrossNUMA bool
	// AlignBySocket cares for sockets where the policy otherwise cares for NUMA nodes.
	AlignBySocket bool
	// DistributeAcrossCores takes one CPU of each core first.
	DistributeAcrossCores bool
	// StrictReservation keeps the reserved CPUs out of the shared pool too.
	StrictReservation bool
	// PreferAlignByCache takes from as few last-level caches as possible.
	PreferAlignByCache bool
}

// The options' names, upstream's.
const (
	fullPCPUsOnly         = "full-pcpus-only"
	distributeAcrossNUMA  = "distribute-cpus-across-numa"
	alignBySocket         = "align-by-socket"
	distributeAcrossCores = "distribute-cpus-across-cores"
	strictReservation     = "strict-cpu-reservation"
	preferAlignByCache    = "prefer-align-cpus-by-uncorecache"
)

// ParseOptions reads them; the errors are upstream's.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	fields := map[string]*bool{
		fullPCPUsOnly: &o.FullPCPUsOnly, distributeAcrossNUMA: &o.DistributeAcrossNUMA, alignBySocket: &o.AlignBySocket,
		distributeAcrossCores: &o.DistributeAcrossCores, strictReservation: &o.StrictReservation, preferAlignByCache: &o.PreferAlignByCache,
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		to, known := fields[name]
		if !known {
			return o, fmt.Errorf("unknown CPU Manager Policy option: %q", name)
		}
		var err error
		if *to, err = strconv.ParseBool(options[name]); err != nil {
			return o, fmt.Errorf("bad value for option %q: %w", name, err)
		}
	}
	for _, pair := range [][2]string{
		{fullPCPUsOnly, distributeAcrossCores}, {distributeAcrossNUMA, distributeAcrossCores},
		{preferAlignByCache, distributeAcrossCores}, {preferAlignByCache, distributeAcrossNUMA},
	} {
		if *fields[pair[0]] && *fields[pair[1]] {
			return o, fmt.Errorf("static policy options %s and %s can not be used at the same time", pair[0], pair[1])
		}
	}
	return o, nil
}

// Check says which options do not fit to a machine or to the topology manager's policy.
func (o Options) Check(machine Topology, policy topology.Policy) error {
	switch {
	case !o.AlignBySocket:
		return nil
	case policy == topology.SingleNUMANode:
		return fmt.Errorf("Topolgy manager %s policy is incompatible with CPUManager %s policy option", policy, alignBySocket)
	case len(machine.parts(ofSocket)) > len(machine.parts(ofNode)):
		return fmt.Errorf("Align by socket is not compatible with hardware where number of sockets are more than number of NUMA")
	default:
		return nil
	}
}
