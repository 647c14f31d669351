package plugins

import (
	"fmt"
	"math"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// InterPodAffinity honours pod affinity and anti-affinity, of the pod itself and of the pods already placed.
type InterPodAffinity struct {
	// Args are complete and valid; nil is upstream's defaults.
	Args *configv1.InterPodAffinityArgs
}

// Name is the plugin's name.
func (InterPodAffinity) Name() string { return "InterPodAffinity" }

// Wakes: pods came, went or changed their labels.
func (InterPodAffinity) Wakes() plugin.Event {
	return plugin.NodeAdded | plugin.NodeLabels | plugin.PodBound | plugin.PodGone | plugin.PodLabels | plugin.NamespaceLabels
}

// Survey starts counting; nil while neither this pod nor any placed pod has a term.
func (p InterPodAffinity) Survey(pod *plugin.Pod, world plugin.World) plugin.Survey {
	if pod.Affinity.Empty() && !world.AffinityInUse {
		return nil
	}
	s := &affinitySurvey{pod: pod, world: world, hardWeight: 1}
	if p.Args != nil {
		prefers := len(pod.Affinity.PreferredAffinity)+len(pod.Affinity.PreferredAnti) > 0
		s.hardWeight, s.indifferent = int64(*p.Args.HardPodAffinityWeight), p.Args.IgnorePreferredTermsOfExistingPods && !prefers
	}
	for kind := range s.tallies {
		s.tallies[kind] = map[place]int64{}
	}
	s.firstOfItsKind = len(pod.Affinity.Affinity) > 0 && s.matchesAll(pod)
	return s
}

// place is one topology domain.
type place struct{ key, value string }

// The tallies that are kept by place.
const (
	wanted    = iota // pods that match all required affinity terms of the pod
	unwanted         // pods that match a required anti-affinity term of the pod
	unwelcome        // placed pods whose required anti-affinity matches the pod
	preferred        // signed weights of preferences, both ways
	tallyKinds
)

// entry is one contribution of a node to one tally.
type entry struct {
	kind  int
	where place
	n     int64
}

type affinitySurvey struct {
	pod            *plugin.Pod
	world          plugin.World
	firstOfItsKind bool  // the pod matches its own affinity, so it may start a group
	hardWeight     int64 // what a required affinity term of a placed pod counts as a preference of pods that match it
	indifferent    bool  // the pod prefers nothing, and what placed pods prefer does not count
	tallies        [tallyKinds]map[place]int64
	entries        [][]entry // by slot: what the node contributed
}

func (s *affinitySurvey) Observe(slot int, node *plugin.Node) {
	for len(s.entries) <= slot {
		s.entries = append(s.entries, nil)
	}
	for _, e := range s.entries[slot] {
		s.count(e, -1)
	}
	s.entries[slot] = s.entries[slot][:0]
	if node == nil {
		return
	}
	if !s.pod.Affinity.Empty() {
		for _, other := range node.Pods {
			s.observeOwnTerms(slot, node, other)
		}
	}
	if node.AffinityPods > 0 {
		for _, other := range node.Pods {
			s.observeTheirTerms(slot, node, other)
		}
	}
}

func (s *affinitySurvey) observeOwnTerms(slot int, node *plugin.Node, other *plugin.Pod) {
	own := &s.pod.Affinity
	if len(own.Affinity) > 0 && s.matchesAll(other) {
		for i := range own.Affinity {
			s.record(slot, node, wanted, &own.Affinity[i], 1)
		}
	}
	s.recordMatches(slot, node, unwanted, own.AntiAffinity, other, func(*plugin.Term) int64 { return 1 })
	s.recordMatches(slot, node, preferred, own.PreferredAffinity, other, func(t *plugin.Term) int64 { return t.Weight })
	s.recordMatches(slot, node, preferred, own.PreferredAnti, other, func(t *plugin.Term) int64 { return -t.Weight })
}

func (s *affinitySurvey) observeTheirTerms(slot int, node *plugin.Node, other *plugin.Pod) {
	theirs := &other.Affinity
	s.recordMatches(slot, node, unwelcome, theirs.AntiAffinity, s.pod, func(*plugin.Term) int64 { return 1 })
	s.recordMatches(slot, node, preferred, theirs.Affinity, s.pod, func(*plugin.Term) int64 { return s.hardWeight })
	s.recordMatches(slot, node, preferred, theirs.PreferredAffinity, s.pod, func(t *plugin.Term) int64 { return t.Weight })
	s.recordMatches(slot, node, preferred, theirs.PreferredAnti, s.pod, func(t *plugin.Term) int64 { return -t.Weight })
}

func (s *affinitySurvey) recordMatches(
	slot int,
	node *plugin.Node,
	kind int,
	terms []plugin.Term,
	target *plugin.Pod,
	weight func(*plugin.Term) int64,
) {
	for i := range terms {
		if terms[i].Matches(target.Pod, s.world.NamespaceLabels) {
			s.record(slot, node, kind, &terms[i], weight(&terms[i]))
		}
	}
}

func (s *affinitySurvey) record(slot int, node *plugin.Node, kind int, term *plugin.Term, n int64) {
	value, ok := node.Labels[term.TopologyKey]
	if !ok {
		return
	}
	e := entry{kind: kind, where: place{term.TopologyKey, value}, n: n}
	s.entries[slot] = append(s.entries[slot], e)
	s.count(e, 1)
}

func (s *affinitySurvey) count(e entry, sign int64) {
	tally := s.tallies[e.kind]
	tally[e.where] += sign * e.n
	if tally[e.where] == 0 {
		delete(tally, e.where)
	}
}

func (s *affinitySurvey) matchesAll(other *plugin.Pod) bool {
	for i := range s.pod.Affinity.Affinity {
		if !s.pod.Affinity.Affinity[i].Matches(other.Pod, s.world.NamespaceLabels) {
			return false
		}
	}
	return true
}

func (s *affinitySurvey) Filter(node *plugin.Node) *plugin.Rejection {
	if r := s.filterAffinity(node); r != nil {
		return r
	}
	for i := range s.pod.Affinity.AntiAffinity {
		key := s.pod.Affinity.AntiAffinity[i].TopologyKey
		if value, ok := node.Labels[key]; ok && s.tallies[unwanted][place{key, value}] > 0 {
			return plugin.Reject("node(s) didn't match pod anti-affinity rules",
				fmt.Sprintf("the pods its anti-affinity excludes left %s=%s", key, value))
		}
	}
	return s.filterUnwelcome(node)
}

// filterAffinity wants every term's domain to hold a matching pod; the first pod of a group that wants itself is let in
// anywhere, else nobody could start.
func (s *affinitySurvey) filterAffinity(node *plugin.Node) *plugin.Rejection {
	const reason = "node(s) didn't match pod affinity rules"
	missing := ""
	for i := range s.pod.Affinity.Affinity {
		key := s.pod.Affinity.Affinity[i].TopologyKey
		value, ok := node.Labels[key]
		if !ok {
			return plugin.RejectForGood(reason, fmt.Sprintf("it had label %s", key))
		}
		if s.tallies[wanted][place{key, value}] <= 0 {
			missing = fmt.Sprintf("a pod its affinity wants ran in %s=%s", key, value)
		}
	}
	if missing == "" || len(s.tallies[wanted]) == 0 && s.firstOfItsKind {
		return nil
	}
	return plugin.RejectForGood(reason, missing)
}

func (s *affinitySurvey) filterUnwelcome(node *plugin.Node) *plugin.Rejection {
	if len(s.tallies[unwelcome]) == 0 {
		return nil
	}
	for key, value := range node.Labels {
		if s.tallies[unwelcome][place{key, value}] > 0 {
			return plugin.Reject("node(s) didn't satisfy existing pods anti-affinity rules",
				"the pods there whose anti-affinity excludes it left")
		}
	}
	return nil
}

func (s *affinitySurvey) Score(feasible []*plugin.Node, scores []int64) bool {
	tally := s.tallies[preferred]
	if len(tally) == 0 || s.indifferent {
		return false
	}
	keys := map[string]bool{}
	for where := range tally {
		keys[where.key] = true
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i, node := range feasible {
		scores[i] = 0
		for key := range keys {
			if value, ok := node.Labels[key]; ok {
				scores[i] += tally[place{key, value}]
			}
		}
		least, most = min(least, scores[i]), max(most, scores[i])
	}
	for i := range scores {
		if most > least {
			scores[i] = int64(float64(plugin.MaxScore) * (float64(scores[i]-least) / float64(most-least))) // upstream's rounding
		} else {
			scores[i] = 0
		}
	}
	return true
}
