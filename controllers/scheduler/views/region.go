package views

import (
	corev1 "k8s.io/api/core/v1"
)

// none is the domain of a node that is in no domain of a region.
const none = -1

// Zoning says how nodes are divided.
type Zoning struct {
	// Key is the node label whose values are the domains.
	Key string
	// ID names Eligible: the same for functions that say the same of every node.
	ID string
	// Eligible tells whether a node is in any domain; nil: if it has the label.
	Eligible func(*corev1.Node) bool
}

// Region divides the nodes into domains.
type Region struct {
	zoning  Zoning
	domains []int32 // by slot
	ids     map[string]int32
	values  []string // by domain
	nodes   []int32  // by domain
	free    []int32  // domains without nodes, to use again
	present int      // domains with nodes
	tallies []*Tally
}

func newRegion(z Zoning, nodes []*corev1.Node) *Region {
	r := &Region{zoning: z, ids: map[string]int32{}}
	for slot, node := range nodes {
		r.set(slot, node)
	}
	return r
}

// domain gives the slot's domain, or none.
func (r *Region) domain(slot int) int32 {
	if slot >= len(r.domains) {
		return none
	}
	return r.domains[slot]
}

// set takes over a node, nil where there is none now, and moves the pods on it in all tallies.
func (r *Region) set(slot int, node *corev1.Node) {
	for len(r.domains) <= slot {
		r.domains = append(r.domains, none)
	}
	old, value, in := r.domains[slot], "", false
	if node != nil {
		value, in = node.Labels[r.zoning.Key]
		in = in && (r.zoning.Eligible == nil || r.zoning.Eligible(node))
	}
	if old != none && in && r.values[old] == value {
		return
	}
	r.domains[slot] = none
	if in {
		r.domains[slot] = r.join(value)
	}
	for _, t := range r.tallies {
		t.moved(t.group.counts.get(int32(slot)), old, r.domains[slot])
	}
	if old != none {
		r.leave(old)
	}
}

// join counts one more node in the domain of a value.
func (r *Region) join(value string) int32 {
	d, known := r.ids[value]
	if !known {
		if last := len(r.free) - 1; last >= 0 {
			d, r.free = r.free[last], r.free[:last]
			r.values[d] = value
		} else {
			d = int32(len(r.values))
			r.values, r.nodes = append(r.values, value), append(r.nodes, 0)
		}
		r.ids[value] = d
		r.present++
	}
	r.nodes[d]++
	return d
}

func (r *Region) leave(d int32) {
	if r.nodes[d]--; r.nodes[d] > 0 {
		return
	}
	delete(r.ids, r.values[d])
	r.free = append(r.free, d)
	r.present--
}
