package plugins

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

func TestTaintTolerationScore(t *testing.T) {
	soft := corev1.TaintEffectPreferNoSchedule
	nodes := []*plugin.Node{node("none"), node("one", taint("a", "", soft)), node("two", taint("a", "", soft), taint("b", "", soft))}
	wantScores(t, rawScores(TaintToleration{}, pod(), nodes...), []int64{100, 50, 0})
	a := tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists})
	wantScores(t, rawScores(TaintToleration{}, pod(a), nodes...), []int64{100, 100, 0})
}

func TestNodeAffinityScore(t *testing.T) {
	prefers := func(weight int32, key, value string) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}
	}
	p := pod(affinity(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefers(4, "disk", "ssd"), prefers(1, "zone", "a")},
	}}))
	got := rawScores(NodeAffinity{}, p, node("n"), node("n", label("zone", "a")), node("n", label("disk", "ssd"), label("zone", "a")))
	wantScores(t, got, []int64{0, 20, 100})
}

func TestLeastAllocated(t *testing.T) {
	empty, half := node("empty"), node("half")
	half.AddPod(pod(requests("cpu", "2", "memory", "4Gi")))
	wantScores(t, rawScores(NodeResourcesFit{}, pod(requests("cpu", "1", "memory", "2Gi")), empty, half), []int64{75, 25})
	wantScores(t, rawScores(NodeResourcesFit{}, pod(requests("cpu", "3", "memory", "2Gi")), half), []int64{12}) // cpu would be over: 0
}

func TestBalancedAllocation(t *testing.T) {
	plain, skewed := node("plain"), node("skewed")
	skewed.AddPod(pod(requests("cpu", "2")))
	wantScores(t, rawScores(NodeResourcesBalancedAllocation{}, pod(requests("cpu", "1", "memory", "2Gi")), plain, skewed), []int64{75, 75})
	wantScores(t, rawScores(NodeResourcesBalancedAllocation{}, pod(requests("memory", "4Gi")), plain, skewed), []int64{62, 87}) // it makes up for the other's CPU
	if rawScores(NodeResourcesBalancedAllocation{}, pod(), plain) != nil {
		t.Error("a pod that asks for nothing has a preference")
	}
}

func TestImageLocality(t *testing.T) {
	const mebi = 1 << 20
	nodes := []*plugin.Node{
		node("cold"), node("small", image("web:latest", 20*mebi)), node("large", image("web:latest", 1000*mebi)), node("other", image("db:1", 500*mebi)),
	}
	s := survey(ImageLocality{}, pod(), plugin.World{}, nodes)
	scores := make([]int64, len(nodes))
	if !s.Score(nodes, scores) {
		t.Fatal("no preference")
	}
	wantScores(t, scores, []int64{0, 0, 48, 0}) // two of four nodes hold it, so its 1000 MiB count half
	s.views.SetNode(2, nil)
	s.views.SetNode(1, nil)
	if s.Score(nodes[:1], scores[:1]) {
		t.Error("a preference although no node holds the image")
	}
}

// TestImageVolumes count like the images of containers.
func TestImageVolumes(t *testing.T) {
	const mebi = 1 << 20
	mounts := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "model"}}}}
	}
	nodes := []*plugin.Node{node("cold"), node("warm", image("model:latest", 1000*mebi))}
	scores := make([]int64, len(nodes))
	if !survey(ImageLocality{}, pod(mounts), plugin.World{}, nodes).Score(nodes, scores) {
		t.Fatal("no preference")
	}
	wantScores(t, scores, []int64{0, 24}) // one of two nodes holds it, and of its two images a pod may have 2000 MiB
}

func TestWithTag(t *testing.T) {
	for in, want := range map[string]string{
		"web": "web:latest", "web:1": "web:1", "reg:5000/web": "reg:5000/web:latest", "reg:5000/web:2": "reg:5000/web:2",
		"web@sha256:00": "web@sha256:00",
	} {
		if got := withTag(in); got != want {
			t.Errorf("withTag(%q) = %q, want %q", in, got, want)
		}
	}
}
