package plugins

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// specs makes a list of resources with their weights.
func specs(pairs ...any) []configv1.ResourceSpec {
	var list []configv1.ResourceSpec
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, configv1.ResourceSpec{Name: pairs[i].(string), Weight: int64(pairs[i+1].(int))})
	}
	return list
}

// points makes a shape from utilizations and scores.
func points(pairs ...int32) []configv1.UtilizationShapePoint {
	var shape []configv1.UtilizationShapePoint
	for i := 0; i < len(pairs); i += 2 {
		shape = append(shape, configv1.UtilizationShapePoint{Utilization: pairs[i], Score: pairs[i+1]})
	}
	return shape
}

// emptyAndHalf are nodes with 4 CPU, 8 GiB, 8 GPUs and 10 GiB of ephemeral storage; 2 CPU, 2 GiB, 4 GPUs and 2 GiB of one are used.
func emptyAndHalf() []*plugin.Node {
	all := allocatable("cpu", "4", "memory", "8Gi", "example.com/gpu", "8", "ephemeral-storage", "10Gi", "pods", "110")
	half := node("half", all)
	half.AddPod(pod(requests("cpu", "2", "memory", "2Gi", "example.com/gpu", "4", "ephemeral-storage", "2Gi")))
	return []*plugin.Node{node("empty", all), half}
}

// TestScoringStrategies: the numbers are computed by hand from upstream's formulas. With the pod of 1 CPU, 2 GiB and a GPU
// the empty node has used 25, 25 and 12.5 percent, the other one 75, 50 and 62.5.
func TestScoringStrategies(t *testing.T) {
	least, most := configv1.LeastAllocated, configv1.MostAllocated
	usual := pod(requests("cpu", "1", "memory", "2Gi", "example.com/gpu", "1"))
	both := specs("cpu", 1, "memory", 1)
	for _, tt := range []struct {
		name      string
		strategy  configv1.ScoringStrategyType
		resources []configv1.ResourceSpec
		shape     []configv1.UtilizationShapePoint
		pod       *plugin.Pod
		want      []int64
	}{
		{"least", least, both, nil, usual, []int64{75, 37}},
		{"least, weighed", least, specs("cpu", 3, "memory", 1), nil, usual, []int64{75, 31}},       // (3*25+50)/4
		{"least, GPUs", least, specs("cpu", 1, "example.com/gpu", 2), nil, usual, []int64{83, 33}}, // (75+2*87)/3, (25+2*37)/3
		{"least, GPUs not wanted", least, specs("cpu", 1, "example.com/gpu", 2), nil, pod(requests("cpu", "1")), []int64{75, 25}},
		{"least, more than there is", least, both, nil, pod(requests("cpu", "3", "memory", "2Gi")), []int64{50, 25}}, // (25+75)/2, (0+50)/2
		{"least, ephemeral storage", least, specs("ephemeral-storage", 1), nil, pod(requests("ephemeral-storage", "3Gi")), []int64{70, 50}},
		{"least, of nothing", least, specs("example.com/fpga", 1), nil, usual, []int64{0, 0}},
		{"most", most, both, nil, usual, []int64{25, 62}},
		{"most, weighed", most, specs("cpu", 3, "memory", 1), nil, usual, []int64{25, 68}},                         // (3*75+50)/4
		{"most, more than there is", most, both, nil, pod(requests("cpu", "3", "memory", "2Gi")), []int64{50, 75}}, // (75+25)/2, (100+50)/2
		{"most, assumed requests", most, both, nil, pod(), []int64{2, 39}},                                         // 100m and 200Mi: (2+2)/2, (52+27)/2
		{"ratio, as most", "", both, points(0, 0, 100, 10), usual, []int64{25, 63}},                                // 62.5 is rounded
		{"ratio, as least", "", both, points(0, 10, 100, 0), usual, []int64{75, 38}},                               // (25+50)/2 is rounded
		{"ratio, weighed", "", specs("cpu", 3, "memory", 1), points(0, 0, 100, 10), usual, []int64{25, 69}},        // 68.75
		{"ratio, zero scores do not count", "", both, points(0, 0, 50, 0, 100, 10), usual, []int64{0, 50}},         // CPU: 0+100*(75-50)/50; memory: 0
		{"ratio, before and after the points", "", specs("cpu", 1), points(30, 3, 60, 9), usual, []int64{30, 90}},
		{"ratio, between the points", "", specs("memory", 1), points(30, 3, 60, 9), usual, []int64{30, 70}}, // 30+60*(50-30)/30
		{"ratio, more than there is", "", specs("cpu", 1), points(0, 0, 100, 10), pod(requests("cpu", "3")), []int64{75, 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			strategy := &configv1.ScoringStrategy{Type: tt.strategy, Resources: tt.resources}
			if tt.shape != nil {
				strategy.Type = configv1.RequestedToCapacityRatio
				strategy.RequestedToCapacityRatio = &configv1.RequestedToCapacityRatioParam{Shape: tt.shape}
			}
			fit := NodeResourcesFit{Args: &configv1.NodeResourcesFitArgs{ScoringStrategy: strategy}}
			wantScores(t, rawScores(fit, tt.pod, emptyAndHalf()...), tt.want)
		})
	}
}

func TestIgnoredResources(t *testing.T) {
	gpu := pod(requests("example.com/gpu", "9", "cpu", "5"))
	n := node("n", allocatable("cpu", "4", "memory", "8Gi", "example.com/gpu", "8", "pods", "110"))
	noCPU := []string{"Insufficient cpu", "the pod requested at most 4 cpu"}
	for name, tt := range map[string]struct {
		args configv1.NodeResourcesFitArgs
		want []string
	}{
		"nothing":       {configv1.NodeResourcesFitArgs{}, []string{"Insufficient cpu", "Insufficient example.com/gpu", "the pod requested at most 4 cpu", "the pod requested at most 8 example.com/gpu"}},
		"the resource":  {configv1.NodeResourcesFitArgs{IgnoredResources: []string{"example.com/gpu"}}, noCPU},
		"its group":     {configv1.NodeResourcesFitArgs{IgnoredResourceGroups: []string{"example.com"}}, noCPU},
		"another group": {configv1.NodeResourcesFitArgs{IgnoredResourceGroups: []string{"com"}}, []string{"Insufficient cpu", "Insufficient example.com/gpu", "the pod requested at most 4 cpu", "the pod requested at most 8 example.com/gpu"}},
	} {
		t.Run(name, func(t *testing.T) { wantTexts(t, judge(NodeResourcesFit{Args: &tt.args}, gpu, n), tt.want) })
	}
	only := pod(requests("example.com/gpu", "9"))
	wantTexts(t, judge(NodeResourcesFit{Args: &configv1.NodeResourcesFitArgs{IgnoredResources: []string{"example.com/gpu"}}}, only, n), nil)
}

// TestBalancedResources: with the pod the shares are 25, 25 and 12.5 percent on the empty node, 75, 50 and 62.5 on the other, where
// they were 50, 25 and 50. A node's score is 50 + (50 + balance with the pod - balance without it) / 2.
func TestBalancedResources(t *testing.T) {
	usual := pod(requests("cpu", "1", "memory", "2Gi", "example.com/gpu", "1"))
	for _, tt := range []struct {
		name      string
		resources []configv1.ResourceSpec
		pod       *plugin.Pod
		want      []int64
	}{
		{"two", specs("cpu", 1, "memory", 1), usual, []int64{75, 75}},                         // 100 and 100; 87 and 87
		{"three", specs("cpu", 1, "memory", 1, "example.com/gpu", 1), usual, []int64{72, 75}}, // 94 and 100; 89 and 88
		{"another pair", specs("cpu", 1, "example.com/gpu", 1), usual, []int64{71, 71}},       // 93 and 100, on both
		{"one of a pair not wanted", specs("cpu", 1, "example.com/gpu", 1), pod(requests("cpu", "1")), []int64{75, 75}},
		{"none wanted", specs("example.com/gpu", 1), pod(requests("cpu", "1")), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := NodeResourcesBalancedAllocation{Args: &configv1.NodeResourcesBalancedAllocationArgs{Resources: tt.resources}}
			wantScores(t, rawScores(p, tt.pod, emptyAndHalf()...), tt.want)
		})
	}
}

func TestAddedNodeAffinity(t *testing.T) {
	ssd := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}
	east := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "side", Operator: corev1.NodeSelectorOpIn, Values: []string{"east"}}}}
	p, err := NewNodeAffinity(&configv1.NodeAffinityArgs{AddedAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{ssd}},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 6, Preference: east}},
	}}, field.NewPath("args"))
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := node("fast", label("disk", "ssd"), label("side", "west")), node("slow", label("side", "east"))
	wantTexts(t, judge(p, pod(), fast), nil)
	wantTexts(t, judge(p, pod(), slow), []string{"node(s) didn't match scheduler-enforced node affinity",
		"it matched the node affinity that the scheduler's configuration adds"})
	picky := pod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"side": "east"} })
	wantTexts(t, judge(p, picky, fast), []string{"node(s) didn't match Pod's node affinity/selector", "it had label side=east"})
	wantScores(t, rawScores(p, pod(), fast, slow), []int64{0, 100})
	own := pod(affinity(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 3, Preference: ssd}},
	}}))
	wantScores(t, rawScores(p, own, fast, slow), []int64{50, 100}) // 3 of the pod against 6 that are added
	if none, err := NewNodeAffinity(&configv1.NodeAffinityArgs{}, nil); err != nil || none.Filter(pod()) != nil || none.Score(pod()) != nil {
		t.Errorf("nothing is added, and the plugin has an opinion: %v", err)
	}
}

// TestAffinityOfPlacedPods: one in zone a requires app=web near it, one in zone b prefers it with weight 3.
func TestAffinityOfPlacedPods(t *testing.T) {
	prefers := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 3, PodAffinityTerm: term(zoneKey, web)}}}}
	}
	world := plugin.World{AffinityInUse: true, NamespaceLabels: func(string) labels.Set { return nil }}
	for _, tt := range []struct {
		name   string
		hard   int32
		ignore bool
		pod    *plugin.Pod
		want   []int64 // nil: no preference
	}{
		{"as upstream's default", 1, false, pod(labelled("app", "web")), []int64{33, 100, 0}},
		{"a heavier required term", 5, false, pod(labelled("app", "web")), []int64{100, 60, 0}},
		{"required terms do not count", 0, false, pod(labelled("app", "web")), []int64{0, 100, 0}},
		{"nothing counts", 5, true, pod(labelled("app", "web")), nil},
		{"the pod prefers something itself", 5, true, pod(labelled("app", "web"), prefers), []int64{100, 60, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := []*plugin.Node{withPods("a", "a", 0), withPods("b", "b", 0), withPods("c", "c", 0)}
			nodes[0].AddPod(pod(wants(term(zoneKey, web))))
			nodes[1].AddPod(pod(prefers))
			p := InterPodAffinity{Args: &configv1.InterPodAffinityArgs{HardPodAffinityWeight: ptr.To(tt.hard), IgnorePreferredTermsOfExistingPods: tt.ignore}}
			s, scores := survey(p, tt.pod, world, nodes), make([]int64, 3)
			if prefers := s.Score(nodes, scores); prefers != (tt.want != nil) {
				t.Fatalf("preference %v", prefers)
			}
			if tt.want != nil {
				wantScores(t, scores, tt.want)
			}
		})
	}
}

func TestDefaultConstraintsOfAProfile(t *testing.T) {
	args := func(constraints ...corev1.TopologySpreadConstraint) PodTopologySpread {
		return PodTopologySpread{Args: &configv1.PodTopologySpreadArgs{DefaultingType: configv1.ListDefaulting, DefaultConstraints: constraints}}
	}
	hard := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule}
	soft := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.ScheduleAnyway}
	world := plugin.World{SpreadSelector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	nodes := []*plugin.Node{withPods("a", "a", 2), withPods("b", "b", 0), node("plain")}
	for range 5 {
		nodes[1].AddPod(pod(labelled("app", "other"))) // of no account
	}
	mine := pod(labelled("app", "web"))
	if got := fitting(survey(args(hard), mine, world, nodes), nodes); len(got) != 1 || got[0] != "b" {
		t.Errorf("%v fit, want b", got)
	}
	scores := make([]int64, 3)
	if !survey(args(soft), mine, world, nodes).Score(nodes, scores) {
		t.Fatal("no preference")
	}
	wantScores(t, scores, []int64{0, 100, 0}) // a: 2*ln(4) = 2.77, rounded 3; the node without a zone is left out
	own := pod(labelled("app", "web"), spread(corev1.TopologySpreadConstraint{MaxSkew: 5, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web}))
	if got := fitting(survey(args(hard), own, world, nodes), nodes); len(got) != 2 {
		t.Errorf("a pod with a constraint of its own: %v fit, want a and b", got)
	}
	inWorld := world
	inWorld.Views = views.New(nil)
	if args().Survey(mine, world) != nil || args(hard).Survey(mine, plugin.World{}) != nil {
		t.Error("an opinion without constraints, or without pods that belong to it")
	}
	if (PodTopologySpread{Args: &configv1.PodTopologySpreadArgs{DefaultingType: configv1.SystemDefaulting}}).Survey(mine, inWorld) == nil {
		t.Error("no default spreading")
	}
}

func TestShapeOfVolumes(t *testing.T) {
	volume := func(name, class, size, host string) *corev1.PersistentVolume {
		only := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host}}
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
			Spec: corev1.PersistentVolumeSpec{StorageClassName: class, Capacity: list("storage", size), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{only}}}}}}}
	}
	claim := func(class, size string, candidates ...*corev1.PersistentVolume) plugin.LateClaim {
		return plugin.LateClaim{Candidates: candidates, Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "of-" + class}, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}}}
	}
	fast := claim("fast", "5Gi", volume("f1", "fast", "10Gi", "a"), volume("f2", "fast", "20Gi", "b"))
	slow := claim("slow", "1Gi", volume("s1", "slow", "4Gi", "a"), volume("s2", "slow", "1Gi", "b"))
	more := claim("fast", "1Gi", volume("f3", "fast", "2Gi", "a"), volume("f4", "fast", "10Gi", "b"))
	nothing := claim("fast", "0", volume("f5", "fast", "0", "a"), volume("f6", "fast", "0", "b"))
	nodes := []*plugin.Node{node("a"), node("b")}
	for name, tt := range map[string]struct {
		shape []configv1.UtilizationShapePoint
		late  []plugin.LateClaim
		want  []int64
	}{
		"most used":         {points(0, 0, 100, 10), []plugin.LateClaim{fast}, []int64{50, 25}},
		"least used":        {points(0, 10, 100, 0), []plugin.LateClaim{fast}, []int64{50, 75}},
		"mean of classes":   {points(0, 0, 100, 10), []plugin.LateClaim{slow, fast}, []int64{38, 63}}, // (50+25)/2 and (25+100)/2, rounded
		"sums of a class":   {points(0, 0, 100, 10), []plugin.LateClaim{more, fast}, []int64{50, 20}}, // 6 of 12 GiB, 6 of 30 GiB
		"of nothing":        {points(0, 0, 100, 10), []plugin.LateClaim{nothing}, []int64{100, 100}},
		"no shape":          {nil, []plugin.LateClaim{fast}, []int64{50, 75}},
		"no claims to bind": {points(0, 0, 100, 10), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod()
			p.Needs.Late = tt.late
			wantScores(t, rawScores(VolumeBinding{Shape: tt.shape}, p, nodes...), tt.want)
		})
	}
}
