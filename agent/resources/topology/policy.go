package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Policy is what is done if resources cannot come from the same NUMA nodes.
type Policy string

// The policies, by upstream's names.
const (
	None           Policy = "none"
	BestEffort     Policy = "best-effort"
	Restricted     Policy = "restricted"
	SingleNUMANode Policy = "single-numa-node"
)

// Policies are all of them.
var Policies = []Policy{None, BestEffort, Restricted, SingleNUMANode}

// Scope is whether containers get their nodes each by itself or all those of a pod together.
type Scope string

// The scopes, by upstream's names.
const (
	OfContainer Scope = "container"
	OfPod       Scope = "pod"
)

// Scopes are both.
var Scopes = []Scope{OfContainer, OfPod}

// nodesMaxDefault is how many NUMA nodes a policy takes unless more are allowed: the sets of them would be too many. Upstream's.
const nodesMaxDefault = 8

// Options are topologyManagerPolicyOptions.
type Options struct {
	PreferClosest bool
	// NodesMax is how many NUMA nodes a machine may have; 0 is the default.
	NodesMax int
}

// ParseOptions reads them; the errors are upstream's.
func ParseOptions(options map[string]string) (Options, error) {
	const closest, most = "prefer-closest-numa-nodes", "max-allowable-numa-nodes"
	out := Options{NodesMax: nodesMaxDefault}
	for name, value := range options {
		var err error
		switch name {
		case closest:
			if out.PreferClosest, err = strconv.ParseBool(value); err != nil {
				return out, fmt.Errorf("bad value for option %q: %w", name, err)
			}
		case most:
			if out.NodesMax, err = strconv.Atoi(value); err != nil {
				return out, fmt.Errorf("unable to convert policy option to integer %q: %w", name, err)
			}
			if out.NodesMax < nodesMaxDefault {
				return out, fmt.Errorf("the minimum value of %q should not be less than %v", name, nodesMaxDefault)
			}
		default:
			return out, fmt.Errorf("unknown Topology Manager Policy option: %q", name)
		}
	}
	return out, nil
}

// Manager merges hints by a policy. The zero Manager has none.
type Manager struct {
	Policy  Policy
	Scope   Scope
	Options Options
	// Nodes are those of the machine. Distances, from node to node, are needed to prefer the closest.
	Nodes     Nodes
	Distances map[int]map[int]int
}

// Check says what of the machine does not fit.
func (m *Manager) Check() error {
	if most := cmp.Or(m.Options.NodesMax, nodesMaxDefault); m.Policy != None && m.Nodes.Count() > most {
		return fmt.Errorf("unsupported on machines with more than %v NUMA Nodes", most)
	}
	return nil
}

// Merge chooses from the hints of all parts, and says whether the policy lets the pod run with that. A choice without nodes means that
// resources may come from any.
func (m *Manager) Merge(all []Hints) (Hint, bool) {
	if m.Policy == None || m.Policy == "" {
		return Hint{}, true
	}
	lists := choices(all)
	if m.Policy == SingleNUMANode {
		lists = onlySingle(lists)
	}
	best := Hint{Nodes: m.Nodes}
	if possible := slices.DeleteFunc(combined(m.Nodes, lists), func(h Hint) bool { return h.Nodes == 0 }); len(possible) > 0 {
		most := neediest(lists)
		best = slices.MinFunc(possible, func(a, b Hint) int { return m.compare(a, b, most) })
	}
	if m.Policy == SingleNUMANode && best.Nodes == m.Nodes {
		best.Nodes = 0
	}
	return best, best.Preferred || m.Policy == BestEffort
}

// onlySingle leaves the preferred hints that name one node or any.
func onlySingle(lists [][]Hint) [][]Hint {
	var out [][]Hint
	for _, list := range lists {
		var left []Hint
		for _, h := range list {
			if h.Preferred && h.Nodes.Count() <= 1 {
				left = append(left, h)
			}
		}
		out = append(out, left)
	}
	return out
}

// neediest is how many nodes the resource needs that needs most.
func neediest(lists [][]Hint) int {
	most := 0
	for _, list := range lists {
		fewest := 0
		for _, h := range list {
			if n := h.Nodes.Count(); n > 0 && (fewest == 0 || n < fewest) {
				fewest = n
			}
		}
		most = max(most, fewest)
	}
	return most
}

// compare puts the better one first. Of two that are not preferred it is the one whose count is nearest to what the neediest resource
// needs: as much, else less, else more.
func (m *Manager) compare(a, b Hint, neediest int) int {
	if a.Preferred != b.Preferred {
		if a.Preferred {
			return -1
		}
		return 1
	}
	if !a.Preferred {
		if order := cmp.Compare(missed(a, neediest), missed(b, neediest)); order != 0 {
			return order
		}
	}
	if m.Options.PreferClosest && m.Policy != SingleNUMANode && a.Nodes.Count() == b.Nodes.Count() {
		if order := cmp.Compare(m.distance(a.Nodes), m.distance(b.Nodes)); order != 0 {
			return order
		}
	}
	return a.Nodes.compare(b.Nodes)
}

// missed is 0 if a hint has as many nodes as are needed, more the fewer it has, and most if it has more.
func missed(h Hint, needed int) int {
	if n := h.Nodes.Count(); n <= needed {
		return needed - n
	}
	return NodesMax
}

// distance is the average between all pairs of nodes.
func (m *Manager) distance(n Nodes) float64 {
	sum, ids := 0, n.IDs()
	for _, from := range ids {
		for _, to := range ids {
			sum += m.Distances[from][to]
		}
	}
	return float64(sum) / float64(len(ids)*len(ids))
}
