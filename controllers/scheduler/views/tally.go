package views

import "slices"

// group counts pods that are asked for together, by the slot of their node.
type group struct {
	id      string
	queries []*Query // a pod is counted if all select it; of bearers: nil
	living  bool     // pods that are being deleted are not counted
	spot    spot
	kinds   []*kind
	counts  counter // by slot
	tallies []*Tally
}

// selectsNamespaces is 1 if the labels of namespaces decide on who is counted, else 0.
func (g *group) selectsNamespaces() int {
	if slices.ContainsFunc(g.queries, func(q *Query) bool { return q.InNamespaces != nil && !q.InNamespaces.Empty() }) {
		return 1
	}
	return 0
}

func (g *group) add(slot int, n int64) {
	g.counts.add(int32(slot), n)
	for _, t := range g.tallies {
		if d := t.region.domain(slot); d != none {
			t.add(d, n)
		}
	}
}

// Tally says how many pods of a group are in each domain of a region.
type Tally struct {
	group  *group
	region *Region
	users  int           // surveys that hold it
	pods   counter       // by domain
	levels map[int64]int // how many domains have that many pods, those without any left out
	least  int64         // no level is below
}

func newTally(g *group, r *Region) *Tally {
	t := &Tally{group: g, region: r, levels: map[int64]int{}}
	g.counts.each(func(slot int32, n int64) {
		if d := r.domain(int(slot)); d != none {
			t.add(d, n)
		}
	})
	return t
}

func (t *Tally) add(d int32, n int64) {
	before, after := t.pods.add(d, n)
	if before > 0 {
		if t.levels[before]--; t.levels[before] == 0 {
			delete(t.levels, before)
		}
	}
	if after == 0 {
		return
	}
	if t.levels[after]++; after < t.least || t.pods.used == 1 {
		t.least = after
	}
}

func (t *Tally) moved(n int64, from, to int32) {
	if n == 0 || from == to {
		return
	}
	if from != none {
		t.add(from, -n)
	}
	if to != none {
		t.add(to, n)
	}
}

// In gives the pods in the domain of a slot; false: the slot is in none.
func (t *Tally) In(slot int) (pods int64, ok bool) {
	d := t.region.domain(slot)
	if d == none {
		return 0, false
	}
	return t.pods.get(d), true
}

// At gives the pods in the domain of a label value; 0: no node is in it.
func (t *Tally) At(value string) int64 {
	d, known := t.region.ids[value]
	if !known {
		return 0
	}
	return t.pods.get(d)
}

// On gives the pods on one node, whatever its domain.
func (t *Tally) On(slot int) int64 { return t.group.counts.get(int32(slot)) }

// Domain numbers the domain of a slot, below Domains; negative: it is in none. Some numbers stand for no domain.
func (t *Tally) Domain(slot int) int { return int(t.region.domain(slot)) }

// Domains bounds the numbers of domains.
func (t *Tally) Domains() int { return len(t.region.values) }

// Empty tells that no domain has a pod.
func (t *Tally) Empty() bool { return t.pods.used == 0 }

// Least is the smallest count of pods over all domains; 0 if there are fewer domains than atLeast.
func (t *Tally) Least(atLeast int64) int64 {
	if int64(t.region.present) < atLeast || t.pods.used < t.region.present || t.pods.used == 0 {
		return 0
	}
	for t.levels[t.least] == 0 { // pods were added to the last domain of that level
		t.least++
	}
	return t.least
}
