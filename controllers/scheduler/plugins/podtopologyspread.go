package plugins

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
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

// Survey starts counting for the pod's constraints.
func (p PodTopologySpread) Survey(pod *plugin.Pod, world plugin.World) plugin.Survey {
	s := &spreadSurvey{pod: pod, requireAll: true}
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
	zone.domains, host.domains = map[string]*domain{}, map[string]*domain{}
	return []*constraint{host, zone}
}

// constraint is one spread constraint and what was counted for it.
type constraint struct {
	key           string
	maxSkew       int64
	minDomains    int64
	selector      labels.Selector
	self          int64 // 1 if the pod itself matches
	honorAffinity bool
	honorTaints   bool
	domains       map[string]*domain
	stale         bool  // least must be computed again
	least         int64 // smallest count over all domains
}

// domain is one value of the topology key among the eligible nodes.
type domain struct {
	nodes, pods int64
	counted     uint64 // the last scoring round that saw a feasible node in it
}

func newConstraint(pod *plugin.Pod, in *corev1.TopologySpreadConstraint, selector labels.Selector) *constraint {
	c := &constraint{
		key:           in.TopologyKey,
		selector:      selector,
		maxSkew:       int64(in.MaxSkew),
		minDomains:    1,
		honorAffinity: true,
		stale:         true,
		domains:       map[string]*domain{},
	}
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

// eligible tells whether the node's pods and domain count at all.
func (c *constraint) eligible(pod *plugin.Pod, node *plugin.Node) bool {
	if c.honorAffinity {
		if ok, _ := pod.NodeAffinity.Match(node.Node); !ok {
			return false
		}
	}
	return !c.honorTaints || untolerated(node.Spec.Taints, pod.Spec.Tolerations, repels) == nil
}

// matching counts the node's pods that the selector selects. As upstream, an empty selector counts none, though it selects the
// pod itself.
func (c *constraint) matching(pod *plugin.Pod, node *plugin.Node) int64 {
	if c.selector.Empty() {
		return 0
	}
	var n int64
	for _, p := range node.Pods {
		if p.Namespace == pod.Namespace && p.DeletionTimestamp == nil && c.selector.Matches(labels.Set(p.Labels)) {
			n++
		}
	}
	return n
}

// minimum is the count a perfectly spread pod would join; 0 while there are fewer domains than asked for.
func (c *constraint) minimum() int64 {
	if !c.stale {
		return c.least
	}
	c.stale, c.least = false, 0
	if int64(len(c.domains)) < c.minDomains {
		return 0
	}
	c.least = math.MaxInt64
	for _, d := range c.domains {
		c.least = min(c.least, d.pods)
	}
	if len(c.domains) == 0 {
		c.least = 0
	}
	return c.least
}

// share is what one node contributes to one constraint.
type share struct {
	value  string
	domain *domain // nil: the node contributes nothing
	pods   int64
}

type spreadSurvey struct {
	pod        *plugin.Pod
	hard, soft []*constraint
	requireAll bool      // a node without every key of the soft constraints is left out
	shares     [][]share // by slot: hard constraints first, then soft ones
	round      uint64    // counts scoring rounds
}

func (s *spreadSurvey) Observe(slot int, node *plugin.Node) {
	for len(s.shares) <= slot {
		s.shares = append(s.shares, make([]share, len(s.hard)+len(s.soft)))
	}
	shares := s.shares[slot]
	s.observe(shares[:len(s.hard)], s.hard, node, true)
	s.observe(shares[len(s.hard):], s.soft, node, s.requireAll)
}

func (s *spreadSurvey) observe(shares []share, constraints []*constraint, node *plugin.Node, requireAll bool) {
	left := node == nil || requireAll && !hasKeys(node, constraints)
	for i, c := range constraints {
		c.withdraw(&shares[i])
		if left {
			continue
		}
		if value, ok := node.Labels[c.key]; ok && c.eligible(s.pod, node) {
			c.contribute(&shares[i], value, c.matching(s.pod, node))
		}
	}
}

func hasKeys(node *plugin.Node, constraints []*constraint) bool {
	for _, c := range constraints {
		if _, ok := node.Labels[c.key]; !ok {
			return false
		}
	}
	return true
}

func (c *constraint) withdraw(sh *share) {
	if sh.domain == nil {
		return
	}
	c.stale = true
	sh.domain.nodes--
	sh.domain.pods -= sh.pods
	if sh.domain.nodes == 0 {
		delete(c.domains, sh.value)
	}
	*sh = share{}
}

func (c *constraint) contribute(sh *share, value string, pods int64) {
	c.stale = true
	d := c.domains[value]
	if d == nil {
		d = &domain{}
		c.domains[value] = d
	}
	d.nodes++
	d.pods += pods
	*sh = share{value: value, domain: d, pods: pods}
}

func (s *spreadSurvey) Filter(node *plugin.Node) *plugin.Rejection {
	for _, c := range s.hard {
		value, ok := node.Labels[c.key]
		if !ok {
			return plugin.RejectForGood("node(s) didn't match pod topology spread constraints (missing required label)",
				fmt.Sprintf("it had label %s", c.key))
		}
		var pods int64
		if d := c.domains[value]; d != nil {
			pods = d.pods
		}
		if skew := pods + c.self - c.minimum(); skew > c.maxSkew {
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
		if s.requireAll && !hasKeys(node, s.soft) {
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
		domains, unlabelled := 0, 0
		for _, node := range feasible {
			switch d := s.shares[node.Slot][len(s.hard)+i].domain; {
			case d == nil && s.requireAll: // the node is left out
			case c.key == corev1.LabelHostname:
				domains++
			case d == nil:
				unlabelled = 1
			case d.counted != s.round:
				d.counted = s.round
				domains++
			}
		}
		weights[i] = math.Log(float64(domains + unlabelled + 2))
	}
	return weights
}

// crowding is the weighted number of matching pods around the node; of its host, those on the node itself.
func (s *spreadSurvey) crowding(node *plugin.Node, weights []float64) int64 {
	var sum float64
	for i, c := range s.soft {
		share := &s.shares[node.Slot][len(s.hard)+i]
		if share.domain == nil {
			continue
		}
		pods := share.domain.pods
		if c.key == corev1.LabelHostname {
			pods = share.pods
		}
		sum += float64(pods)*weights[i] + float64(c.maxSkew-1)
	}
	return int64(math.Round(sum))
}
