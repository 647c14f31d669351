package cpus

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

// taker collects CPUs for one container.
type taker struct {
	machine Topology
	options Options
	// free are those that may be taken, missing is how many still have to be.
	free    Topology
	missing int
	taken   cpuset.CPUSet
	// nodesFirst: a NUMA node has one socket or more, not the other way.
	nodesFirst bool
}

func newTaker(machine Topology, options Options, from cpuset.CPUSet, count int) *taker {
	return &taker{
		machine: machine, options: options, free: machine.only(from), missing: count,
		nodesFirst: len(machine.parts(ofSocket)) >= len(machine.parts(ofNode)),
	}
}

// Take chooses count CPUs of a set. The error is upstream's.
func Take(machine Topology, options Options, from cpuset.CPUSet, count int) (cpuset.CPUSet, error) {
	t := newTaker(machine, options, from, count)
	if count > len(t.free) {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", count, from.Size())
	}
	group := 1
	if options.FullPCPUsOnly {
		group = machine.threads()
	}
	if !options.DistributeAcrossNUMA || count%group != 0 || !t.distribute(group) {
		t.pack()
	}
	return t.taken, nil
}

// pack takes the largest parts of the machine that are free as a whole and not too large, then what is smaller, and last single CPUs, so
// that few parts are broken. Of equal parts those go first whose surroundings have the least left.
func (t *taker) pack() {
	outer := t.outer()
	t.takeWhole(outer[0])
	t.takeWhole(outer...)
	if t.options.PreferAlignByCache {
		t.packCaches()
	}
	if t.options.DistributeAcrossCores {
		t.takeFirst(t.free.order(t.downToSockets()...))
		return
	}
	cores := append(outer, ofCore)
	t.takeWhole(cores...)
	t.takeFirst(t.free.order(cores...))
}

// outer are NUMA nodes and sockets, the larger ones first.
func (t *taker) outer() []level {
	if t.nodesFirst {
		return []level{ofNode, ofSocket}
	}
	return []level{ofSocket, ofNode}
}

func (t *taker) downToNodes() []level {
	if t.nodesFirst {
		return []level{ofNode}
	}
	return t.outer()
}

func (t *taker) downToSockets() []level {
	if t.nodesFirst {
		return t.outer()
	}
	return []level{ofSocket}
}

// take takes CPUs that are free.
func (t *taker) take(ids cpuset.CPUSet) {
	for _, id := range ids.UnsortedList() {
		delete(t.free, id)
	}
	t.taken, t.missing = t.taken.Union(ids), t.missing-ids.Size()
}

// takeFirst takes what is missing from the beginning of a list.
func (t *taker) takeFirst(ids []int) { t.take(cpuset.New(ids[:min(t.missing, len(ids))]...)) }

// takeWhole takes parts of the last of the levels that are free as a whole, as long as they are not larger than what is missing; those that
// have lost CPUs go last.
func (t *taker) takeWhole(levels ...level) {
	of := levels[len(levels)-1]
	all, free, parts := t.machine.parts(of), t.free.parts(of), t.free.orderParts(levels...)
	slices.SortStableFunc(parts, func(a, b int) int { return cmp.Compare(all[b], all[a]) })
	for _, part := range parts {
		if size := all[part]; free[part] == size && size <= t.missing {
			t.take(t.free.where(func(c CPU) bool { return of(c) == part }))
		}
	}
}

// packCaches takes caches as a whole, and the rest from one cache if there is one that has enough.
func (t *taker) packCaches() {
	levels := append(t.downToNodes(), ofCache)
	size := len(t.machine) / len(t.machine.parts(ofCache))
	for _, cache := range t.free.orderParts(levels...) {
		if t.missing >= size {
			t.takeWhole(levels...)
		}
		if t.missing == 0 {
			return
		}
		t.takeFromCache(cache)
	}
}

// takeFromCache takes all that is missing from the first cores of a cache that have something free, if that is as much.
func (t *taker) takeFromCache(cache int) {
	threads := t.machine.threads()
	inCache := t.free.only(t.free.where(func(c CPU) bool { return c.Cache == cache }))
	cores := cpuset.New(inCache.list(ofCore)...).List()
	cores = cores[:min(len(cores), (t.missing+threads-1)/threads)]
	chosen := cpuset.New(cores...)
	ids := t.free.where(func(c CPU) bool { return chosen.Contains(c.Core) }).List()
	if t.missing%2 != 0 && threads > 1 && len(ids) > t.missing {
		ids = ids[:len(ids)-1] // one of the last core is enough
	}
	if len(ids) == t.missing {
		t.take(cpuset.New(ids...))
	}
}

func (t Topology) list(of level) []int {
	var out []int
	for part := range t.parts(of) {
		out = append(out, part)
	}
	return out
}
