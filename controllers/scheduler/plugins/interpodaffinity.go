package plugins

import (
	"fmt"
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
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

// Survey asks for the pods that the pod's terms are about; nil while neither this pod nor any placed pod has a term.
func (p InterPodAffinity) Survey(pod *plugin.Pod, world plugin.World) plugin.Survey {
	if pod.Affinity.Empty() && !world.AffinityInUse {
		return nil
	}
	s := &affinitySurvey{pod: pod, world: world, hardWeight: 1}
	if p.Args != nil {
		prefers := len(pod.Affinity.PreferredAffinity)+len(pod.Affinity.PreferredAnti) > 0
		s.hardWeight, s.indifferent = int64(*p.Args.HardPodAffinityWeight), p.Args.IgnorePreferredTermsOfExistingPods && !prefers
	}
	s.askOwn()
	s.askOthers()
	return s
}

// preference is a count with what each of its pods weighs; a negative one keeps away.
type preference struct {
	*views.Tally
	weight int64
}

type affinitySurvey struct {
	pod            *plugin.Pod
	world          plugin.World
	firstOfItsKind bool  // the pod matches its own affinity, so it may start a group
	hardWeight     int64 // what a required affinity term of a placed pod counts as a preference of pods that match it
	indifferent    bool  // the pod prefers nothing, and what placed pods prefer does not count

	wanted   []*views.Tally // by required affinity term: the pods that match all of them
	unwanted []*views.Tally // by required anti-affinity term: the pods that match it
	own      []preference

	asked     uint64          // the version of the next two
	unwelcome []*views.Bearer // placed pods whose required anti-affinity matches the pod
	theirs    []preference
}

func (s *affinitySurvey) askOwn() {
	own := &s.pod.Affinity
	all := make([]*views.Query, len(own.Affinity))
	s.firstOfItsKind = len(own.Affinity) > 0
	for i, t := range own.Affinity {
		all[i] = &t.Query
		s.firstOfItsKind = s.firstOfItsKind && t.Matches(s.pod.Namespace, s.pod.Labels, s.world.NamespaceLabels)
	}
	for _, t := range own.Affinity {
		s.wanted = append(s.wanted, s.tally(all, t.Key))
	}
	for _, t := range own.AntiAffinity {
		s.unwanted = append(s.unwanted, s.tally([]*views.Query{&t.Query}, t.Key))
	}
	for _, t := range own.PreferredAffinity {
		s.own = append(s.own, preference{s.tally([]*views.Query{&t.Query}, t.Key), t.Weight})
	}
	for _, t := range own.PreferredAnti {
		s.own = append(s.own, preference{s.tally([]*views.Query{&t.Query}, t.Key), -t.Weight})
	}
}

func (s *affinitySurvey) tally(queries []*views.Query, key string) *views.Tally {
	return s.world.Views.Tally(queries, false, views.Zoning{Key: key})
}

// askOthers finds the terms of placed pods that are about the pod.
func (s *affinitySurvey) askOthers() {
	s.asked = s.world.Views.BearersVersion()
	s.unwelcome, s.theirs = s.unwelcome[:0], s.theirs[:0]
	s.world.Views.Bearers(s.pod.Namespace, s.pod.Labels, func(b *views.Bearer) {
		switch b.Kind {
		case views.Excludes:
			s.unwelcome = append(s.unwelcome, b)
		case views.Requires:
			s.theirs = append(s.theirs, preference{b.Tally, s.hardWeight})
		case views.Prefers:
			s.theirs = append(s.theirs, preference{b.Tally, b.Weight})
		case views.Avoids:
			s.theirs = append(s.theirs, preference{b.Tally, -b.Weight})
		}
	})
}

// upToDate asks again if placed pods have other terms now.
func (s *affinitySurvey) upToDate() {
	if s.asked != s.world.Views.BearersVersion() {
		s.askOthers()
	}
}

// Release ends the use of the pod's own questions. Those about it are of the placed pods.
func (s *affinitySurvey) Release() {
	for _, t := range slices.Concat(s.wanted, s.unwanted) {
		s.world.Views.Release(t)
	}
	for _, p := range s.own {
		s.world.Views.Release(p.Tally)
	}
}

func (s *affinitySurvey) Filters() bool {
	s.upToDate()
	return len(s.wanted)+len(s.unwanted)+len(s.unwelcome) > 0
}

func (s *affinitySurvey) Filter(node *plugin.Node) *plugin.Rejection {
	s.upToDate()
	if r := s.filterAffinity(node); r != nil {
		return r
	}
	for i, t := range s.unwanted {
		if n, _ := t.In(node.Slot); n > 0 {
			key := s.pod.Affinity.AntiAffinity[i].Key
			return plugin.Reject("node(s) didn't match pod anti-affinity rules",
				fmt.Sprintf("the pods its anti-affinity excludes left %s=%s", key, node.Labels[key]))
		}
	}
	for _, b := range s.unwelcome {
		if n, _ := b.In(node.Slot); n > 0 {
			return plugin.Reject("node(s) didn't satisfy existing pods anti-affinity rules",
				"the pods there whose anti-affinity excludes it left")
		}
	}
	return nil
}

// filterAffinity wants every term's domain to hold a matching pod; the first pod of a group that wants itself is let in
// anywhere, else nobody could start.
func (s *affinitySurvey) filterAffinity(node *plugin.Node) *plugin.Rejection {
	const reason = "node(s) didn't match pod affinity rules"
	missing := ""
	for i, t := range s.wanted {
		n, in := t.In(node.Slot)
		key := s.pod.Affinity.Affinity[i].Key
		if !in {
			return plugin.RejectForGood(reason, fmt.Sprintf("it had label %s", key))
		}
		if n == 0 {
			missing = fmt.Sprintf("a pod its affinity wants ran in %s=%s", key, node.Labels[key])
		}
	}
	if missing == "" || s.firstOfItsKind && !slices.ContainsFunc(s.wanted, holdsPods) {
		return nil
	}
	return plugin.RejectForGood(reason, missing)
}

func holdsPods(t *views.Tally) bool { return !t.Empty() }

func (s *affinitySurvey) Score(feasible []*plugin.Node, scores []int64) bool {
	s.upToDate()
	clear(scores)
	if len(feasible) == 0 || s.indifferent || !addPreferences(s.own, feasible, scores) && !s.anyTheirs() {
		return false
	}
	addPreferences(s.theirs, feasible, scores)
	least, most := slices.Min(scores), slices.Max(scores)
	for i := range scores {
		if most > least {
			scores[i] = int64(float64(plugin.MaxScore) * (float64(scores[i]-least) / float64(most-least))) // upstream's rounding
		} else {
			scores[i] = 0
		}
	}
	return true
}

func (s *affinitySurvey) anyTheirs() bool {
	return slices.ContainsFunc(s.theirs, func(p preference) bool { return p.weight != 0 && holdsPods(p.Tally) })
}

// addPreferences adds the weights of the pods around each node, and tells whether there are any pods.
func addPreferences(list []preference, feasible []*plugin.Node, scores []int64) bool {
	any := false
	for _, p := range list {
		if p.weight == 0 || p.Empty() {
			continue
		}
		any = true
		for i, node := range feasible {
			n, _ := p.In(node.Slot)
			scores[i] += p.weight * n
		}
	}
	return any
}
