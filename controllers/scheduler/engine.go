package scheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
	"github.com/setpoint-io/setpoint/controllers/scheduler/points"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// engine places the pods of one profile on the cache's nodes. It does no I/O and is guarded by scheduler.mu.
type engine struct {
	cache   *cache
	profile *profile.Profile
	laps    points.Laps
	classes classes
	loose   *class // that of the last pod, if it is not remembered
	round   uint64 // counts placements; rotates ties
	found   []*plugin.Node
	scores  []int64
	sums    []int64
}

func newEngine(c *cache, p *profile.Profile) *engine {
	return &engine{cache: c, profile: p, classes: newClasses()}
}

// place finds the best node for the pod, or a FitError that says why there is none. key is podkey.Of the pod; spread
// selects the pods of the same services and owner.
func (e *engine) place(pod *plugin.Pod, key podkey.Key, spread labels.Selector) (*plugin.Node, error) {
	e.round++
	if e.cache.known == 0 {
		return nil, &FitError{Wakes: plugin.NodeAdded}
	}
	c := e.class(pod, key, spread)
	e.laps.Ran(points.PreFilter, points.Success)
	if c.failure != nil && e.stillFails(pod, c) {
		e.laps.Ran(points.Filter, points.Unschedulable)
		return nil, c.failure.told()
	}
	c.failure = nil
	feasible := e.feasible(pod, c)
	if len(feasible) == 0 {
		e.laps.Ran(points.Filter, points.Unschedulable)
		c.failure = e.diagnose(pod, c)
		return nil, c.failure.told()
	}
	e.laps.Ran(points.Filter, points.Success)
	return e.best(c, e.nominatedFirst(pod, feasible)), nil
}

// nominatedFirst narrows the choice to the node on which room was made for the pod, if it fits there.
func (e *engine) nominatedFirst(pod *plugin.Pod, feasible []*plugin.Node) []*plugin.Node {
	if n := e.cache.nominations[pod.UID]; n != nil {
		for i, node := range feasible {
			if node.Name == n.node {
				return feasible[i : i+1]
			}
		}
	}
	return feasible
}

// class finds or prepares the pod's class. A pod pinned to nodes by name, as a DaemonSet's, has no equals: its class is
// not kept.
func (e *engine) class(pod *plugin.Pod, key podkey.Key, spread labels.Selector) *class {
	e.letGo()
	id := classID{Key: key.With(pod), affinityInUse: e.cache.affinityPods > 0, spread: spreadText(spread)}
	if c := e.classes.find(id); c != nil {
		e.classes.shapes.use(c.shape, len(e.cache.nodes))
		return c
	}
	world := plugin.World{
		Views: e.cache.views, NamespaceLabels: e.cache.namespaceLabels, SpreadSelector: spread, AffinityInUse: id.affinityInUse,
	}
	c := newClass(pod, e.classes.shapes.find(id.Shape, pod, e.profile.Plugins), e.profile.Plugins, world)
	if c.pinned == nil {
		e.classes.keep(id, c, len(e.cache.nodes))
		e.classes.shapes.use(c.shape, len(e.cache.nodes))
	} else {
		e.loose = c
	}
	return c
}

// letGo ends the use of the views by a class that is not remembered.
func (e *engine) letGo() {
	if e.loose != nil {
		e.loose.release()
		e.loose = nil
	}
}

// reset drops all classes: something changed that they do not track by node.
func (e *engine) reset() {
	e.letGo()
	e.classes.reset()
}

// feasible lists the nodes that fit, as many as the profile wants to compare. It starts at another slot for each pod, so
// that ties do not all fall on one node.
func (e *engine) feasible(pod *plugin.Pod, c *class) []*plugin.Node {
	e.found = e.found[:0]
	n := len(e.cache.nodes)
	enough := n
	if e.cache.nominations[pod.UID] == nil { // else the node where room was made must be among them
		enough = e.profile.Enough(e.cache.known)
	}
	start := int(e.round % uint64(n))
	for i := 0; i < n && len(e.found) < enough; i++ {
		at := start + i
		if at >= n {
			at -= n
		}
		node := e.cache.nodes[at]
		if node == nil || node.Node == nil || c.pinned != nil && !slices.Contains(c.pinned, node.Name) {
			continue
		}
		if r, _ := e.verdict(pod, c, node); r == nil {
			e.found = append(e.found, node)
		}
	}
	return e.found
}

// best gives the first node with the highest weighted sum of normalized scores.
func (e *engine) best(c *class, feasible []*plugin.Node) *plugin.Node {
	if len(feasible) == 1 {
		return feasible[0]
	}
	e.sums = resize(e.sums, len(feasible))
	clear(e.sums)
	e.score(c, feasible, func(_ plugin.Plugin, weight int64, scores []int64) {
		for i, s := range scores {
			e.sums[i] += weight * s
		}
	})
	best := 0
	for i := range e.sums {
		if e.sums[i] > e.sums[best] {
			best = i
		}
	}
	e.laps.Ran(points.Score, points.Success)
	return feasible[best]
}

// score calls add with the normalized scores of the feasible nodes by each plugin that has a preference. The scores are
// good until add returns.
func (e *engine) score(c *class, feasible []*plugin.Node, add func(p plugin.Plugin, weight int64, scores []int64)) {
	e.scores = resize(e.scores, len(feasible))
	c.shape.prepare(feasible)
	for k, s := range c.shape.scores {
		c.shape.score(k, feasible, e.scores)
		s.plugin.Normalize(e.scores)
		add(s.plugin, s.weight, e.scores)
	}
	for _, s := range c.surveyScores {
		if s.survey.Score(feasible, e.scores) {
			add(s.plugin, s.weight, e.scores)
		}
	}
}

func resize(s []int64, n int) []int64 {
	if cap(s) < n {
		return make([]int64, n)
	}
	return s[:n]
}
