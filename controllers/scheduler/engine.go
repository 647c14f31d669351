package scheduler

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// classLimit bounds how many classes of identical pods are remembered; the one not used for longest goes first.
const classLimit = 128

// engine places the pods of one profile on the cache's nodes. It does no I/O and is guarded by scheduler.mu.
type engine struct {
	cache   *cache
	profile *profile.Profile
	classes map[classID]*class
	round   uint64 // counts placements; rotates ties, dates classes
	found   []*plugin.Node
	scores  []int64
	sums    []int64
}

// classID names a class. The world's part of it is in the name, so that a class made for another world is not found.
type classID struct {
	pod           string
	spread        string // the selector for default spreading
	affinityInUse bool
}

func newEngine(c *cache, p *profile.Profile) *engine {
	return &engine{cache: c, profile: p, classes: map[classID]*class{}}
}

// place finds the best node for the pod, or a FitError that says why there is none. key is keyOf the pod; spread
// selects the pods of the same services and owner.
func (e *engine) place(pod *plugin.Pod, key string, spread labels.Selector) (*plugin.Node, error) {
	e.round++
	if e.cache.known == 0 {
		return nil, &FitError{Wakes: plugin.NodeAdded}
	}
	c := e.class(pod, key, spread)
	if c.failure != nil && c.failedAt == e.cache.generation && len(e.cache.nominations) == 0 {
		return nil, c.failure.copy()
	}
	c.refresh(e.cache.nodes)
	feasible := e.feasible(pod, c)
	if len(feasible) == 0 {
		return nil, e.failed(pod, c)
	}
	return e.best(c, e.nominatedFirst(pod, feasible)), nil
}

// failed explains a failure and keeps the explanation for the next pod of the class, unless it depends on promises made
// to other pods.
func (e *engine) failed(pod *plugin.Pod, c *class) *FitError {
	fit := e.diagnose(pod, c)
	if len(e.cache.nominations) == 0 {
		c.failure, c.failedAt = fit, e.cache.generation
	}
	return fit.copy()
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
func (e *engine) class(pod *plugin.Pod, key string, spread labels.Selector) *class {
	id := classID{pod: key, affinityInUse: e.cache.affinityPods > 0}
	if spread != nil {
		id.spread = spread.String()
	}
	c := e.classes[id]
	if c == nil {
		world := plugin.World{NamespaceLabels: e.cache.namespaceLabels, SpreadSelector: spread, AffinityInUse: id.affinityInUse}
		c = newClass(pod, e.profile.Plugins, world)
		if c.pinned == nil {
			e.keep(id, c)
		}
	}
	c.used = e.round
	return c
}

func (e *engine) keep(id classID, c *class) {
	if len(e.classes) >= classLimit {
		var oldest classID
		least := e.round
		for id, c := range e.classes {
			if c.used < least {
				oldest, least = id, c.used
			}
		}
		delete(e.classes, oldest)
	}
	e.classes[id] = c
}

// reset drops all classes: something changed that they do not track by node.
func (e *engine) reset() {
	clear(e.classes)
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
		node := e.cache.nodes[(start+i)%n]
		if node == nil || node.Node == nil || c.pinned != nil && !c.pinned[node.Name] {
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
	return feasible[best]
}

// score calls add with the normalized scores of the feasible nodes by each plugin that has a preference. The scores are
// good until add returns.
func (e *engine) score(c *class, feasible []*plugin.Node, add func(p plugin.Plugin, weight int64, scores []int64)) {
	e.scores = resize(e.scores, len(feasible))
	for k, s := range c.scores {
		for i, node := range feasible {
			e.scores[i] = c.raw[node.Slot*len(c.scores)+k]
		}
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
