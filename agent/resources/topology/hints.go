package topology

import (
	"maps"
	"slices"
)

// Hint says that a resource can be given from some NUMA nodes.
type Hint struct {
	// Nodes are these; empty: it does not matter from which.
	Nodes Nodes
	// Preferred: with fewer nodes it would not be possible, also if nothing were in use.
	Preferred bool
}

// Hints of one part of the agent, by resource. A nil list has no preference; an empty one says that it is impossible.
type Hints map[string][]Hint

// Impossible is the list of a resource that cannot be given.
func Impossible() []Hint { return []Hint{} }

// Prefer marks the hints with the fewest nodes possible, which are fewest.
func Prefer(hints []Hint, fewest int) {
	for i := range hints {
		hints[i].Preferred = hints[i].Nodes.Count() == fewest
	}
}

// choices are what each resource can have.
func choices(all []Hints) [][]Hint {
	var out [][]Hint
	for _, hints := range all {
		if len(hints) == 0 {
			out = append(out, []Hint{{Preferred: true}})
		}
		for _, resource := range slices.Sorted(maps.Keys(hints)) {
			switch list := hints[resource]; {
			case list == nil:
				out = append(out, []Hint{{Preferred: true}})
			case len(list) == 0:
				out = append(out, []Hint{{}})
			default:
				out = append(out, list)
			}
		}
	}
	return out
}

// combined are the results of taking one hint of each list: the nodes that all of them name, preferred if all are and name the same.
func combined(machine Nodes, lists [][]Hint) []Hint {
	type partial struct {
		Hint
		first Nodes // of a preferred one: what all so far name; empty: any
	}
	now := map[partial]bool{{Hint: Hint{Nodes: machine, Preferred: true}}: true}
	for _, list := range lists {
		next := map[partial]bool{}
		for p := range now {
			for _, h := range list {
				n := partial{Hint: Hint{Nodes: p.Nodes, Preferred: p.Preferred && h.Preferred}, first: p.first}
				if h.Nodes != 0 {
					n.Nodes &= h.Nodes
					n.Preferred = n.Preferred && (p.first == 0 || p.first == h.Nodes)
					n.first = h.Nodes
				}
				if !n.Preferred {
					n.first = 0
				}
				next[n] = true
			}
		}
		now = next
	}
	var out []Hint
	for p := range now {
		out = append(out, p.Hint)
	}
	return out
}

// Best is a preferred one of a list that is not empty, and of these one with the fewest nodes.
func Best(hints []Hint) Hint {
	return slices.MinFunc(hints, func(a, b Hint) int {
		if a.Preferred != b.Preferred {
			if a.Preferred {
				return -1
			}
			return 1
		}
		return a.Nodes.compare(b.Nodes)
	})
}
