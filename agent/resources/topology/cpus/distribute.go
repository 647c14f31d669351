package cpus

import (
	"maps"
	"math"
	"slices"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// share is how CPUs are spread over some NUMA nodes: each gives even of them, and those of rest what is left, a group at a time.
type share struct {
	nodes, rest []int
	even        int
	// balance is how unequal the nodes of the machine are afterwards; the less the better.
	balance   float64
	oneSocket bool
}

// distribute takes from as few NUMA nodes as can give the same number each, in groups (KEP-2902). It reports whether there are any; if
// not it has taken nothing.
func (t *taker) distribute(group int) bool {
	if t.missing == 0 {
		return true
	}
	nodes := t.free.orderParts(t.downToNodes()...)
	fewest, most := t.nodesNeeded(group, len(nodes))
	for size := fewest; size <= most; size++ {
		if best := t.bestShare(nodes, size, group); best != nil {
			t.takeShare(best, group)
			return true
		}
	}
	return false
}

// nodesNeeded are the fewest and the most NUMA nodes that can be needed.
func (t *taker) nodesNeeded(group, free int) (fewest, most int) {
	ceil := func(a, b int) int { return (a + b - 1) / b }
	perNode := ceil(ceil(len(t.machine), group), len(t.machine.parts(ofNode)))
	needed := ceil(t.missing, group)
	return ceil(needed, perNode), min(needed, free)
}

func (t *taker) bestShare(nodes []int, size, group int) *share {
	var best *share
	for chosen := range topology.Combinations(nodes, size) {
		if best != nil && best.balance == 0 && (!t.options.AlignBySocket || best.oneSocket) {
			break
		}
		s := t.shareOf(nodes, chosen, group)
		switch {
		case s == nil || s.balance == math.MaxFloat64:
		case best == nil, s.oneSocket && !best.oneSocket, s.oneSocket == best.oneSocket && s.balance < best.balance:
			best = s
		}
	}
	return best
}

// shareOf spreads what is missing over the chosen nodes; nil: they cannot give it.
func (t *taker) shareOf(nodes, chosen []int, group int) *share {
	left := t.free.parts(ofNode)
	groups := 0
	for _, node := range chosen {
		groups += left[node] / group
	}
	if groups*group < t.missing {
		return nil
	}
	s := &share{nodes: chosen, even: t.missing / len(chosen) / group * group, balance: math.MaxFloat64}
	if t.options.AlignBySocket {
		s.oneSocket = len(t.machine.sockets(topology.NodesOf(chosen...))) <= 1
		for _, node := range chosen {
			s.even = min(s.even, left[node]/group*group)
		}
	}
	for _, node := range chosen {
		if left[node] < s.even {
			return nil
		}
		left[node] -= s.even
	}
	s.chooseRest(left, nodes, t.missing-s.even*len(chosen), group)
	return s
}

// chooseRest finds the nodes that give the rest: as many as can, and of these the ones that leave the machine most equal.
func (s *share) chooseRest(left map[int]int, nodes []int, rest, group int) {
	if rest == 0 {
		s.balance = deviation(left, nodes)
		return
	}
	able := slices.DeleteFunc(slices.Clone(s.nodes), func(node int) bool { return left[node] < group })
	for size := len(able); size >= 1; size-- {
		for some := range topology.Combinations(able, size) {
			after, ok := giveRest(left, some, rest, group)
			if !ok {
				continue
			}
			if b := deviation(after, nodes); b < s.balance {
				s.balance, s.rest = b, some
			}
		}
	}
}

// giveRest takes the rest from nodes in turns.
func giveRest(left map[int]int, from []int, rest, group int) (map[int]int, bool) {
	after := maps.Clone(left)
	for rest > 0 {
		given := false
		for _, node := range from {
			if rest > 0 && after[node] >= group {
				after[node], rest, given = after[node]-group, rest-group, true
			}
		}
		if !given {
			return nil, false
		}
	}
	return after, true
}

func (t *taker) takeShare(s *share, group int) {
	for _, node := range s.nodes {
		t.takeFromNode(node, s.even)
	}
	for t.missing > 0 {
		for _, node := range s.rest {
			if t.missing > 0 && t.free.parts(ofNode)[node] >= group {
				t.takeFromNode(node, group)
			}
		}
	}
}

func (t *taker) takeFromNode(node, count int) {
	inside := newTaker(t.machine, t.options, t.free.In(topology.NodesOf(node)), count)
	inside.pack()
	t.take(inside.taken)
}

// deviation is the standard deviation of what nodes have left, to a thousandth as upstream's.
func deviation(left map[int]int, nodes []int) float64 {
	round := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	sum := 0.0
	for _, node := range nodes {
		sum += float64(left[node])
	}
	mean, squares := round(sum/float64(len(nodes))), 0.0
	for _, node := range nodes {
		squares += (float64(left[node]) - mean) * (float64(left[node]) - mean)
	}
	return round(math.Sqrt(squares / float64(len(nodes))))
}
