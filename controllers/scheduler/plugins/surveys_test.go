package plugins

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

const zoneKey = corev1.LabelTopologyZone

var web = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

// withPods makes a node in a zone with n pods of app=web.
func withPods(name, zone string, n int, options ...nodeOption) *plugin.Node {
	result := node(name, append([]nodeOption{label(zoneKey, zone)}, options...)...)
	for range n {
		result.AddPod(pod(labelled("app", "web")))
	}
	return result
}

// fitting gives the names of the nodes a survey lets through.
func fitting(s plugin.Survey, nodes []*plugin.Node) []string {
	var names []string
	for _, n := range nodes {
		if s.Filter(n) == nil {
			names = append(names, n.Name)
		}
	}
	return names
}

func TestTopologySpreadFilter(t *testing.T) {
	hard := func(change func(*corev1.TopologySpreadConstraint)) podOption {
		c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web}
		if change != nil {
			change(&c)
		}
		return spread(c)
	}
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	tainted := taint("k", "v", corev1.TaintEffectNoSchedule)
	onlyA := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zoneKey: "a"} }
	three := int32(3)
	tests := []struct {
		name  string
		pod   *plugin.Pod
		nodes []*plugin.Node
		want  []string
	}{
		{"even", pod(labelled("app", "web"), hard(nil)), []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 1)}, []string{"a1", "b1"}},
		{"skewed", pod(labelled("app", "web"), hard(nil)), []*plugin.Node{withPods("a1", "a", 1), withPods("a2", "a", 0), withPods("b1", "b", 0)}, []string{"b1"}},
		{"not counting itself", pod(hard(nil)), []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0)}, []string{"a1", "b1"}},
		{"label missing", pod(labelled("app", "web"), hard(nil)), []*plugin.Node{withPods("a1", "a", 0), node("x")}, []string{"a1"}},
		{"fewer domains than asked for", pod(labelled("app", "web"), hard(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &three })),
			[]*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0)}, []string{"b1"}},
		{"affinity honoured", pod(labelled("app", "web"), onlyA, hard(nil)), []*plugin.Node{withPods("a1", "a", 3), withPods("b1", "b", 0)}, []string{"a1", "b1"}},
		{"affinity ignored", pod(labelled("app", "web"), onlyA, hard(func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore })),
			[]*plugin.Node{withPods("a1", "a", 3), withPods("b1", "b", 0)}, []string{"b1"}},
		{"taints ignored", pod(labelled("app", "web"), hard(nil)), []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0, tainted)}, []string{"b1"}},
		{"taints honoured", pod(labelled("app", "web"), hard(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor })),
			[]*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0, tainted)}, []string{"a1", "b1"}},
		{"own revision only", pod(labelled("app", "web"), labelled("rev", "2"), hard(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"rev"} })),
			[]*plugin.Node{withPods("a1", "a", 5), withPods("b1", "b", 0)}, []string{"a1", "b1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := survey(PodTopologySpread{}, tt.pod, plugin.World{}, tt.nodes)
			wantTexts(t, fitting(s, tt.nodes), tt.want)
		})
	}
}

func TestTopologySpreadFollowsChanges(t *testing.T) {
	nodes := []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0)}
	p := pod(labelled("app", "web"), spread(corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web}))
	s := survey(PodTopologySpread{}, p, plugin.World{}, nodes)
	wantTexts(t, texts(s.Filter(nodes[0])), []string{"node(s) didn't match pod topology spread constraints", "maxSkew over topology.kubernetes.io/zone were 2"})
	s.count(nodes[1], pod(labelled("app", "web")))
	wantTexts(t, fitting(s, nodes), []string{"a1", "b1"})
	s.count(nodes[1], pod(labelled("app", "web")))
	wantTexts(t, fitting(s, nodes), []string{"a1"})
	s.views.SetNode(0, nil) // a node and with it its zone disappear
	wantTexts(t, fitting(s, nodes[1:]), []string{"b1"})
}

func TestTopologySpreadScore(t *testing.T) {
	nodes := []*plugin.Node{withPods("a1", "a", 3), withPods("b1", "b", 1), withPods("c1", "c", 0), node("x")}
	soft := spread(corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: web})
	s := survey(PodTopologySpread{}, pod(labelled("app", "web"), soft), plugin.World{}, nodes)
	scores := make([]int64, 4)
	s.Score(nodes, scores)
	wantScores(t, scores, []int64{0, 60, 100, 0}) // crowding 5, 2, 0; no zone: no score
}

func TestDefaultSpreading(t *testing.T) {
	nodes := []*plugin.Node{withPods("a1", "a", 2), withPods("a2", "a", 0), withPods("b1", "b", 0)}
	s := survey(PodTopologySpread{}, pod(labelled("app", "web")), plugin.World{SpreadSelector: labels.SelectorFromSet(web.MatchLabels)}, nodes)
	scores := make([]int64, 3)
	s.Score(nodes, scores)
	if scores[0] >= scores[1] || scores[1] >= scores[2] {
		t.Errorf("scores %v, want the crowded host worst and the empty zone best", scores)
	}
	if (PodTopologySpread{}).Survey(pod(), plugin.World{SpreadSelector: labels.Everything()}) != nil {
		t.Error("a pod without services and owner is spread")
	}
}

func term(key string, selector *metav1.LabelSelector) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selector}
}

func wants(terms ...corev1.PodAffinityTerm) podOption {
	return affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}})
}

func avoids(terms ...corev1.PodAffinityTerm) podOption {
	return affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}})
}

func TestInterPodAffinityFilter(t *testing.T) {
	inTeam := term(zoneKey, web)
	inTeam.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	elsewhere := term(zoneKey, web)
	elsewhere.Namespaces = []string{"other"}
	world := plugin.World{AffinityInUse: true, NamespaceLabels: func(name string) labels.Set {
		return map[string]labels.Set{"default": {"team": "blue"}}[name]
	}}
	lonely := node("b1", label(zoneKey, "b"))
	lonely.AddPod(pod(labelled("app", "db"), avoids(term(zoneKey, web))))
	tests := []struct {
		name  string
		pod   *plugin.Pod
		nodes []*plugin.Node
		want  []string
	}{
		{"affinity", pod(wants(term(zoneKey, web))), []*plugin.Node{withPods("a1", "a", 1), withPods("a2", "a", 0), withPods("b1", "b", 0)}, []string{"a1", "a2"}},
		{"affinity without label", pod(wants(term(zoneKey, web))), []*plugin.Node{withPods("a1", "a", 1), node("x")}, []string{"a1"}},
		{"nobody to join", pod(wants(term(zoneKey, web))), []*plugin.Node{withPods("a1", "a", 0)}, nil},
		{"first of its kind", pod(labelled("app", "web"), wants(term(zoneKey, web))), []*plugin.Node{withPods("a1", "a", 0), withPods("b1", "b", 0), node("x")}, []string{"a1", "b1"}},
		{"second of its kind", pod(labelled("app", "web"), wants(term(zoneKey, web))), []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0)}, []string{"a1"}},
		{"anti-affinity", pod(avoids(term(zoneKey, web))), []*plugin.Node{withPods("a1", "a", 1), withPods("a2", "a", 0), withPods("b1", "b", 0)}, []string{"b1"}},
		{"anti-affinity by host", pod(avoids(term(corev1.LabelHostname, web))), []*plugin.Node{withPods("a1", "a", 1), withPods("a2", "a", 0)}, []string{"a2"}},
		{"anti-affinity of others", pod(labelled("app", "web")), []*plugin.Node{withPods("a1", "a", 0), lonely}, []string{"a1"}},
		{"namespace selector", pod(avoids(inTeam)), []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0)}, []string{"b1"}},
		{"other namespace", pod(avoids(elsewhere)), []*plugin.Node{withPods("a1", "a", 1), withPods("b1", "b", 0)}, []string{"a1", "b1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := survey(InterPodAffinity{}, tt.pod, world, tt.nodes)
			wantTexts(t, fitting(s, tt.nodes), tt.want)
		})
	}
}

func TestInterPodAffinityFollowsChanges(t *testing.T) {
	nodes := []*plugin.Node{withPods("a1", "a", 0), withPods("b1", "b", 0)}
	s := survey(InterPodAffinity{}, pod(avoids(term(zoneKey, web))), plugin.World{}, nodes)
	newcomer := pod(labelled("app", "web"))
	s.count(nodes[0], newcomer)
	wantTexts(t, texts(s.Filter(nodes[0])), []string{"node(s) didn't match pod anti-affinity rules",
		"the pods its anti-affinity excludes left topology.kubernetes.io/zone=a"})
	s.views.Remove(0, newcomer.Member)
	wantTexts(t, fitting(s, nodes), []string{"a1", "b1"})
}

func TestInterPodAffinityScore(t *testing.T) {
	prefers := affinity(corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 10, PodAffinityTerm: term(zoneKey, web)},
		}},
		PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 10, PodAffinityTerm: term(corev1.LabelHostname, web)},
		}},
	})
	nodes := []*plugin.Node{withPods("a1", "a", 1), withPods("a2", "a", 0), withPods("b1", "b", 0)}
	s := survey(InterPodAffinity{}, pod(prefers), plugin.World{}, nodes)
	scores := make([]int64, 3)
	if !s.Score(nodes, scores) {
		t.Fatal("no preference")
	}
	wantScores(t, scores, []int64{0, 100, 0}) // same zone, but not the same host

	if (InterPodAffinity{}).Survey(pod(), plugin.World{}) != nil {
		t.Error("a survey although nobody has terms")
	}
}
