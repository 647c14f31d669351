package scheduler

import (
	"maps"
	"math"
	"slices"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// failure is why the pods of a class fit nowhere, kept up as nodes change.
type failure struct {
	FitError
	asked    bool   // pods on other nodes counted
	best     remedy // what Hint says
	examined int    // the last slot that best was chosen from
	at       uint64 // the cache's generation
}

// told gives a FitError of its own to a pod: preemption depends on the pod, the rest on its class.
func (f *failure) told() *FitError {
	fit := f.FitError
	fit.Reasons = maps.Clone(f.Reasons)
	return &fit
}

// diagnose explains why no node fits.
func (e *engine) diagnose(pod *plugin.Pod, c *class) *failure {
	f := &failure{at: e.cache.generation, asked: c.asks(), FitError: FitError{
		Nodes: e.cache.known, Reasons: map[string]int{}, Wakes: plugin.NodeAdded, class: c,
		rejections: make([]*plugin.Rejection, len(e.cache.nodes)),
	}}
	for slot, node := range e.cache.nodes {
		if node == nil || node.Node == nil {
			continue
		}
		if c.pinned != nil && !slices.Contains(c.pinned, node.Name) {
			f.Reasons[outsidePin]++
			continue
		}
		rejection, wakes := e.verdict(pod, c, node)
		f.set(slot, rejection, wakes)
	}
	e.advise(f)
	return f
}

// set replaces what is said of one node; nil: it has gone.
func (f *failure) set(slot int, r *plugin.Rejection, wakes plugin.Event) {
	if slot >= len(f.rejections) {
		f.rejections = append(f.rejections, make([]*plugin.Rejection, slot+1-len(f.rejections))...)
	}
	if old := f.rejections[slot]; old != nil {
		for _, reason := range old.Reasons {
			if f.Reasons[reason]--; f.Reasons[reason] == 0 {
				delete(f.Reasons, reason)
			}
		}
	}
	f.rejections[slot] = r
	if r == nil {
		return
	}
	f.Wakes |= wakes
	for _, reason := range r.Reasons {
		f.Reasons[reason]++
	}
}

// stillFails tells that none of the nodes that changed since the failure fits, and brings the failure up to date. It gives false,
// too, where only a look at all nodes can tell: if pods on other nodes count, or if the pod has been promised room.
func (e *engine) stillFails(pod *plugin.Pod, c *class) bool {
	f := c.failure
	if e.cache.nominations[pod.UID] != nil {
		return false
	}
	if f.at == e.cache.generation {
		return true
	}
	slots, known := e.cache.changedSince(f.at)
	if !known || f.asked || c.asks() {
		return false
	}
	stale := false
	for _, slot := range slots {
		var r *plugin.Rejection
		var wakes plugin.Event
		if node := e.cache.nodes[slot]; node != nil && node.Node != nil {
			if r, wakes = e.verdict(pod, c, node); r == nil {
				return false
			}
		}
		f.set(int(slot), r, wakes)
		stale = e.adviseOn(f, int(slot)) || stale
	}
	f.Nodes, f.at = e.cache.known, e.cache.generation
	if stale {
		e.advise(f)
	}
	return true
}

// adviseOn takes one changed node into account. It gives true if only a look at all nodes tells what is best now.
func (e *engine) adviseOn(f *failure, slot int) (stale bool) {
	if slot > f.examined {
		return false
	}
	if f.best.slot == slot || f.rejections[slot] == nil || f.examined != math.MaxInt {
		return true
	}
	better := f.best.better(e.remedy(f, slot))
	if better.slot != f.best.slot {
		f.best, f.Hint = better, better.sentence()
	}
	return false
}

func (e *engine) remedy(f *failure, slot int) remedy {
	return newRemedy(slot, e.cache.nodes[slot].Name, f.class.rejections(e.cache.nodes[slot]))
}

// advise looks for the smallest change that would help.
func (e *engine) advise(f *failure) {
	f.best, f.examined = remedy{slot: -1}, math.MaxInt
	examined := 0
	for slot, r := range f.rejections {
		if r == nil {
			continue
		}
		f.best = f.best.better(e.remedy(f, slot))
		if examined++; examined == hintNodeLimit {
			f.examined = slot
			break
		}
	}
	f.Hint = f.best.sentence()
}
