package cpus

import (
	"cmp"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// CPU is where a logical CPU stands.
type CPU struct {
	Node, Socket int
	// Core and Cache have the lowest number of the CPUs that share the core and the last level of cache.
	Core, Cache int
}

// Topology are the CPUs of a machine that are online, by number.
type Topology map[int]CPU

// level is a kind of part of a machine.
type level func(CPU) int

func ofNode(c CPU) int   { return c.Node }
func ofSocket(c CPU) int { return c.Socket }
func ofCache(c CPU) int  { return c.Cache }
func ofCore(c CPU) int   { return c.Core }

// All are the numbers.
func (t Topology) All() cpuset.CPUSet { return t.where(func(CPU) bool { return true }) }

func (t Topology) where(is func(CPU) bool) cpuset.CPUSet {
	var ids []int
	for id, c := range t {
		if is(c) {
			ids = append(ids, id)
		}
	}
	return cpuset.New(ids...)
}

// In are the CPUs of some NUMA nodes.
func (t Topology) In(nodes topology.Nodes) cpuset.CPUSet {
	return t.where(func(c CPU) bool { return nodes.Has(c.Node) })
}

// Nodes are the NUMA nodes that have CPUs.
func (t Topology) Nodes() topology.Nodes {
	var nodes topology.Nodes
	for _, c := range t {
		nodes |= topology.NodesOf(c.Node)
	}
	return nodes
}

// only are the CPUs of a set.
func (t Topology) only(set cpuset.CPUSet) Topology {
	out := Topology{}
	for _, id := range set.UnsortedList() {
		if c, ok := t[id]; ok {
			out[id] = c
		}
	}
	return out
}

// parts are the numbers of the parts of a level, with how many CPUs each has.
func (t Topology) parts(of level) map[int]int {
	out := map[int]int{}
	for _, c := range t {
		out[of(c)]++
	}
	return out
}

// threads is how many CPUs a core has; cores of which one is offline have fewer.
func (t Topology) threads() int {
	most := 1
	for _, n := range t.parts(ofCore) {
		most = max(most, n)
	}
	return most
}

// wholeCores are the CPUs of a set of which the whole core is in it, and which has as many as others.
func (t Topology) wholeCores(set cpuset.CPUSet) cpuset.CPUSet {
	free, threads := t.only(set), t.threads()
	has := free.parts(ofCore)
	return free.where(func(c CPU) bool { return has[c.Core] == threads })
}

// sockets of these NUMA nodes.
func (t Topology) sockets(nodes topology.Nodes) map[int]bool {
	out := map[int]bool{}
	for _, c := range t {
		if nodes.Has(c.Node) {
			out[c.Socket] = true
		}
	}
	return out
}

// OneCache reports whether all CPUs of a set share a last-level cache.
func (t Topology) OneCache(set cpuset.CPUSet) bool { return len(t.only(set).parts(ofCache)) == 1 }

// order sorts the CPUs by the parts that they are in, the largest kind first: of each kind the part with the fewest CPUs, then that with
// the lowest number.
func (t Topology) order(levels ...level) []int {
	counts := make([]map[int]int, len(levels))
	ids := make([]int, 0, len(t))
	for i, of := range levels {
		counts[i] = t.parts(of)
	}
	for id := range t {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int) int {
		for i, of := range levels {
			p, q := of(t[a]), of(t[b])
			if order := cmp.Or(cmp.Compare(counts[i][p], counts[i][q]), cmp.Compare(p, q)); order != 0 {
				return order
			}
		}
		return cmp.Compare(a, b)
	})
	return ids
}

// orderParts are the parts of the last of the levels, in the order of their CPUs.
func (t Topology) orderParts(levels ...level) []int {
	var out []int
	of := levels[len(levels)-1]
	for _, id := range t.order(levels...) {
		if part := of(t[id]); !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}
