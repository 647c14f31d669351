package topology

import (
	"cmp"
	"iter"
	"math/bits"
)

// NodesMax is how many NUMA nodes a machine may have: their numbers are below it.
const NodesMax = 64

// Nodes is a set of NUMA nodes.
type Nodes uint64

// NodesOf makes a set of numbers; those that no NUMA node can have are left out.
func NodesOf(ids ...int) Nodes {
	var n Nodes
	for _, id := range ids {
		if id >= 0 && id < NodesMax {
			n |= 1 << id
		}
	}
	return n
}

// Count is how many there are.
func (n Nodes) Count() int { return bits.OnesCount64(uint64(n)) }

// Has reports whether a node is among them.
func (n Nodes) Has(id int) bool { return n&NodesOf(id) != 0 }

// IDs are their numbers, sorted.
func (n Nodes) IDs() []int {
	out := make([]int, 0, n.Count())
	for ; n != 0; n &= n - 1 {
		out = append(out, bits.TrailingZeros64(uint64(n)))
	}
	return out
}

// compare puts the smaller set first, and of equally large ones that with the lower numbers.
func (n Nodes) compare(other Nodes) int {
	return cmp.Or(cmp.Compare(n.Count(), other.Count()), cmp.Compare(n, other))
}

// Subsets are all that are not empty, those with fewer nodes first.
func (n Nodes) Subsets() iter.Seq[Nodes] {
	ids := n.IDs()
	return func(yield func(Nodes) bool) {
		for size := 1; size <= len(ids); size++ {
			for chosen := range Combinations(ids, size) {
				if !yield(NodesOf(chosen...)) {
					return
				}
			}
		}
	}
}

// Combinations are the ways to choose size of ids, in the order of ids. Each is a slice of its own.
func Combinations(ids []int, size int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		chosen := make([]int, 0, size)
		var next func(from int) bool
		next = func(from int) bool {
			if len(chosen) == size {
				return yield(append([]int(nil), chosen...))
			}
			for i := from; i <= len(ids)-(size-len(chosen)); i++ {
				chosen = append(chosen, ids[i])
				more := next(i + 1)
				chosen = chosen[:len(chosen)-1]
				if !more {
					return false
				}
			}
			return true
		}
		if size > 0 {
			next(0)
		}
	}
}
