package plugins

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// PodTopologySpread keeps pods of one kind evenly spread over the values of a node label. A pod without constraints of
// its own spreads with the pods of the same services and owner: softly over hosts and zones, or as its profile says.
type PodTopologySpread struct {
	// Args are complete and valid; nil is upstream's defaults.
	Args *configv1.PodTopologySpreadArgs
}

// Name is the plugin's name.
func (PodTopologySpread) Name() string { return "PodTopologySpread" }

// Wakes: the counts or the domains changed.
func (PodTopologySpread) Wakes() plugin.Event {
	return plugin.NodeAdded | plugin.NodeGone | plugin.NodeLabels | plugin.NodeTaints |
		plugin.PodBound | plugin.PodGone | plugin.PodLabels
}

// Survey asks for the pods that the pod's constraints are about.
func (p PodTopologySpread) Survey(pod *plugin.Pod, world plugin.World) plugin.Survey {
	s := &spreadSurvey{pod: pod, views: world.Views, requireAll: true}
	switch {
	case len(pod.Spec.TopologySpreadConstraints) > 0:
		s.add(pod.Spec.TopologySpreadConstraints, func(in *corev1.TopologySpreadConstraint) labels.Selector {
			return plugin.WithLabelKeys(plugin.ParseSelector(in.LabelSelector), pod.Labels, in.MatchLabelKeys, selection.In)
		})
	case world.SpreadSelector == nil || world.SpreadSelector.Empty():
	case p.Args != nil && p.Args.DefaultingType == configv1.ListDefaulting:
		s.add(p.Args.DefaultConstraints, func(*corev1.TopologySpreadConstraint) labels.Selector { return world.SpreadSelector })
	default:
		s.requireAll = false // nodes without a zone label are still spread over by host
		s.soft = systemConstraints(world.SpreadSelector)
	}
	if len(s.hard)+len(s.soft) == 0 {
		return nil
	}
	s.ask(s.hard, true)
	s.ask(s.soft, s.requireAll)
	return s
}

// add takes over constraints; selector says which pods each is about.
func (s *spreadSurvey) add(constraints []corev1.TopologySpreadConstraint, selector func(*corev1.TopologySpreadConstraint) labels.Selector) {
	for i := range constraints {
		in := &constraints[i]
		if c := newConstraint(s.pod, in, selector(in)); in.WhenUnsatisfiable == corev1.DoNotSchedule {
			s.hard = append(s.hard, c)
		} else {
			s.soft = append(s.soft, c)
		}
	}
}

// systemConstraints are upstream's defaults for pods that state none.
func systemConstraints(selector labels.Selector) []*constraint {
	zone := &constraint{key: corev1.LabelTopologyZone, maxSkew: 5, selector: selector, minDomains: 1, honorAffinity: true}
	host := &constraint{key: corev1.LabelHostname, maxSkew: 3, selector: selector, minDomains: 1, honorAffinity: true}
	return []*constraint{host, zone}
}

// constraint is one spread constraint and where the pods are that it is about.
type constraint struct {
	key           string
	maxSkew       int64
	minDomains    int64
	selector      labels.Selector
	self          int64 // 1 if the pod itself matches
	honorAffinity bool
	honorTaints   bool
	pods          *views.Tally
	counted       []uint64 // by domain: the last scoring round that saw a feasible node in it
}

func newConstraint(pod *plugin.Pod, in *corev1.TopologySpreadConstraint, selector labels.Selector) *constraint {
	c := &constraint{key: in.TopologyKey, selector: selector, maxSkew: int64(in.MaxSkew), minDomains: 1, honorAffinity: true}
	if in.MinDomains != nil {
		c.minDomains = int64(*in.MinDomains)
	}
	if in.NodeAffinityPolicy != nil {
		c.honorAffinity = *in.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	}
	if in.NodeTaintsPolicy != nil {
		c.honorTaints = *in.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	}
	if c.selector.Matches(labels.Set(pod.Labels)) {
		c.self = 1
	}
	return c
}

type spreadSurvey struct {
	pod        *plugin.Pod
	views      *views.Views
	hard, soft []*constraint
	requireAll bool   // a node without every key of the soft constraints is left out
	round      uint64 // counts scoring rounds
}

// ask begins to use the counts of the constraints. As upstream, an empty selector counts no pods, though it selects the pod
// itself; and pods that are being deleted do not count.
func (s *spreadSurvey) ask(constraints []*constraint, requireAll bool) {
	for _, c := range constraints {
		query := views.Query{Namespaces: []string{s.pod.Namespace}, Labels: c.selector}
		if c.selector.Empty() {
			query.Labels = labels.Nothing()
		}
		c.pods = s.views.Tally([]*views.Query{&query}, true, s.zoning(c, constraints, requireAll))
	}
}

// zoning is over the nodes whose pods and domains count at all.
func (s *spreadSurvey) zoning(c *constraint, all []*constraint, requireAll bool) views.Zoning {
	z := views.Zoning{Key: c.key}
	var judges []func(*corev1.Node) bool
	if requireAll && len(all) > 1 {
		z.ID += "keys"
		for _, other := range all {
			z.ID += " " + other.key
		}
		judges = append(judges, func(node *corev1.Node) bool { return hasKeys(node, all) })
	}
	if c.honorAffinity && s.pod.SelectsNodes() {
		z.ID += "\naffinity " + s.pod.NodeAffinityID()
		affinity := s.pod.NodeAffinity
		judges = append(judges, func(node *corev1.Node) bool { ok, _ := affinity.Match(node); return ok })
	}
	if c.honorTaints {
		tolerations := s.pod.Spec.Tolerations
		z.ID += "\ntaints " + s.pod.TolerationsID()
		judges = append(judges, func(node *corev1.Node) bool { return untolerated(node.Spec.Taints, tolerations, repels) == nil })
	}
	if len(judges) > 0 {
		z.Eligible = func(node *corev1.Node) bool {
			return !slices.ContainsFunc(judges, func(ok func(*corev1.Node) bool) bool { return !ok(node) })
		}
	}
	return z
}

func hasKeys(node *corev1.Node, constraints []*constraint) bool {
	for _, c := range constraints {
		if _, ok := node.Labels[c.key]; !ok {
			return false
		}
	}
	return true
}

// Release ends the use of the counts.
func (s *spreadSurvey) Release() {
	for _, c := range slices.Concat(s.hard, s.soft) {
		s.views.Release(c.pods)
	}
}

func (s *spreadSurvey) Filters() bool { return len(s.hard) > 0 }

func (s *spreadSurvey) Filter(node *plugin.Node) *plugin.Rejection {
	for _, c := range s.hard {
		value, ok := node.Labels[c.key]
		if !ok {
			return plugin.RejectForGood("node(s) didn't match pod topology spread constraints (missing required label)",
				fmt.Sprintf("it had label %s", c.key))
		}
		pods := c.pods.At(value) // the node itself need not be one that counts
		if skew := pods + c.self - c.pods.Least(c.minDomains); skew > c.maxSkew {
			return plugin.Reject("node(s) didn't match pod topology spread constraints",
				fmt.Sprintf("maxSkew over %s were %d", c.key, skew))
		}
	}
	return nil
}

func (s *spreadSurvey) Score(feasible []*plugin.Node, scores []int64) bool {
	if len(s.soft) == 0 {
		return false
	}
	s.round++
	weights := s.weights(feasible)
	const ignored = -1
	least, most := int64(math.MaxInt64), int64(0)
	for i, node := range feasible {
		if s.requireAll && !hasKeys(node.Node, s.soft) {
			scores[i] = ignored
			continue
		}
		scores[i] = s.crowding(node, weights)
		least, most = min(least, scores[i]), max(most, scores[i])
	}
	for i, crowding := range scores {
		switch {
		case crowding == ignored:
			scores[i] = 0
		case most == 0:
			scores[i] = plugin.MaxScore
		default:
			scores[i] = plugin.MaxScore * (most + least - crowding) / most
		}
	}
	return true
}

// weights favours keys with many values: one pod more matters less there. As upstream, every node is a value of its host name,
// and where not all keys are required, nodes without the key have one value together.
func (s *spreadSurvey) weights(feasible []*plugin.Node) []float64 {
	weights := make([]float64, len(s.soft))
	for i, c := range s.soft {
		weights[i] = math.Log(float64(s.values(c, feasible) + 2))
	}
	return weights
}

// values is how many values the feasible nodes have.
func (s *spreadSurvey) values(c *constraint, feasible []*plugin.Node) int {
	for len(c.counted) < c.pods.Domains() {
		c.counted = append(c.counted, 0)
	}
	domains, unlabelled := 0, 0
	for _, node := range feasible {
		switch d := c.pods.Domain(node.Slot); {
		case d < 0 && s.requireAll: // the node is left out
		case c.key == corev1.LabelHostname:
			domains++
		case d < 0:
			unlabelled = 1
		case c.counted[d] != s.round:
			c.counted[d] = s.round
			domains++
		}
	}
	return domains + unlabelled
}

// crowding is the weighted number of matching pods around the node; of its host, those on the node itself.
func (s *spreadSurvey) crowding(node *plugin.Node, weights []float64) int64 {
	var sum float64
	for i, c := range s.soft {
		pods, in := c.pods.In(node.Slot)
		if !in {
			continue
		}
		if c.key == corev1.LabelHostname {
			pods = c.pods.On(node.Slot)
		}
		sum += float64(pods)*weights[i] + float64(c.maxSkew-1)
	}
	return int64(math.Round(sum))
}
