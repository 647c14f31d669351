package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// configured reads the part of a KubeSchedulerConfiguration below its kind.
func configured(t *testing.T, text string) profile.Config {
	t.Helper()
	config, err := profile.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// packing has the default profile and packer, which prefers the fullest node.
func packing(t *testing.T) profile.Config {
	return configured(t, `
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
  - {name: PodTopologySpread, args: {defaultingType: List}}
`)
}

// by gives the pod a schedulerName.
func by(name string, pod *corev1.Pod) *corev1.Pod {
	pod.Spec.SchedulerName = name
	return pod
}

// benchOf has the engine of a single profile.
func benchOf(t *testing.T, text string, nodes ...*corev1.Node) bench {
	b := newBench(nodes...)
	b.engine = newEngine(b.cache, &configured(t, text).Profiles[0])
	return b
}

func TestProfilesShareNodes(t *testing.T) {
	config := packing(t)
	spreader := newBench(nodesNamed(3)...)
	packer := bench{spreader.cache, newEngine(spreader.cache, &config.Profiles[1])}
	first := spreader.try(testPod("first", "1", "2Gi"))
	for i := range 10 {
		if got := packer.try(by("packer", testPod(fmt.Sprint("packed-", i), "1", "2Gi"))); got != first {
			t.Errorf("pod %d of packer is on %s, want the fullest, %s", i, got, first)
		}
	}
	seen := map[string]bool{}
	for i := range 10 {
		seen[spreader.try(testPod(fmt.Sprint("spread-", i), "1", "2Gi"))] = true
	}
	if len(seen) != 2 || seen[first] {
		t.Errorf("pods of the default profile are on %v, want the two that packer leaves alone", seen)
	}
}

func TestDisabledPlugins(t *testing.T) {
	tainted := testNode("tainted", "z", "4", "8Gi")
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	if got := benchOf(t, "", tainted).try(testPod("p", "1", "")); !strings.Contains(got, "untolerated taint") {
		t.Errorf("the default profile: %s", got)
	}
	if got := benchOf(t, "profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}]}}}]", tainted).try(testPod("p", "1", "")); got != "tainted" {
		t.Errorf("without the filter: %s", got)
	}
	// The survey of a plugin that only scores must not reject, and that of one that only filters must not be asked for scores.
	zones := []*corev1.Node{testNode("a", "a", "4", "8Gi"), testNode("b", "b", "4", "8Gi")}
	hard := func(name string) *corev1.Pod {
		pod := testPod(name, "1", "")
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
		return pod
	}
	for text, want := range map[string]string{
		"": "node(s) didn't match pod topology spread constraints",
		"profiles: [{plugins: {filter: {disabled: [{name: PodTopologySpread}]}}}]":                       "a",
		"profiles: [{plugins: {score: {disabled: [{name: '*'}]}, preScore: {disabled: [{name: '*'}]}}}]": "node(s) didn't match pod topology spread constraints",
	} {
		b := benchOf(t, text, zones...)
		b.setPod(bound(testPod("there", "1", ""), "a"))
		full := bound(testPod("full", "4", ""), "b")
		full.Labels = nil
		b.setPod(full)
		if got := b.try(hard("p")); got != want && (want == "a" || !strings.Contains(got, want)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestWeightsDecide: with images on one node (worth 48), the other emptier (20) and, for pods that spread, without such pods
// (100). The heavier preference wins; one that is disabled does not count, whatever its weight.
func TestWeightsDecide(t *testing.T) {
	warm, empty := testNode("warm", "z", "10", "10Gi"), testNode("empty", "z", "10", "10Gi")
	warm.Status.Images = []corev1.ContainerImage{{Names: []string{"web:latest"}, SizeBytes: 1000 << 20}}
	for _, tt := range []struct {
		plugins string
		spreads bool
		want    string
	}{
		{"", false, "warm"},
		{"", true, "empty"},
		{"score: {enabled: [{name: ImageLocality, weight: 1}, {name: NodeResourcesFit, weight: 5}]}", false, "empty"},
		{"score: {enabled: [{name: ImageLocality, weight: 9}, {name: NodeResourcesFit, weight: 5}]}", false, "warm"},
		{"score: {enabled: [{name: PodTopologySpread, weight: 1}, {name: ImageLocality, weight: 9}]}", true, "warm"},
		{"multiPoint: {enabled: [{name: NodeResourcesFit, weight: 9}]}", false, "empty"},
		{"multiPoint: {enabled: [{name: NodeResourcesFit, weight: 9}]}, score: {disabled: [{name: NodeResourcesFit}]}", false, "warm"},
		{"multiPoint: {disabled: [{name: ImageLocality}]}", false, "empty"},
		{"multiPoint: {enabled: [{name: PodTopologySpread, weight: 9}]}, score: {disabled: [{name: PodTopologySpread}]}", true, "warm"},
	} {
		b := benchOf(t, "profiles: [{plugins: {"+tt.plugins+"}}]", warm, empty)
		b.setPod(bound(testPod("there", "2", "2Gi"), "warm"))
		pod := testPod("p", "1", "1Gi")
		if tt.spreads {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
				WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
		}
		if got := b.try(pod); got != tt.want {
			t.Errorf("%s, spreads %v: %s, want %s", tt.plugins, tt.spreads, got, tt.want)
		}
	}
}

func TestFewerNodesAreCompared(t *testing.T) {
	const text = "percentageOfNodesToScore: 25"
	b := benchOf(t, text, nodesNamed(800)...)
	pod := plugin.NewPod(testPod("p", "1", ""))
	found := func() []*plugin.Node {
		c := b.engine.class(pod, podkey.Of(pod.Pod), nil)
		return b.feasible(pod, c)
	}
	if n := len(found()); n != 200 {
		t.Errorf("%d nodes are compared, want a quarter of 800", n)
	}
	first := found()[0].Name
	if b.engine.round++; found()[0].Name == first {
		t.Error("the next pod looks at the same nodes")
	}
	b.nominate(pod, "node-799")
	if all := found(); !slices.ContainsFunc(all, func(n *plugin.Node) bool { return n.Name == "node-799" }) {
		t.Error("the node where room was made is left out")
	}
}

func TestPreemptionOfAProfile(t *testing.T) {
	important := int32(10)
	preemptor := func() *corev1.Pod {
		pod := testPod("in", "32", "")
		pod.Spec.Priority = &important
		return pod
	}
	// Each node has a victim; that of the last one is the mildest.
	fill := func(b bench) {
		for i := range 20 {
			pod := testPod(fmt.Sprint("p", i), "32", "")
			priority := int32(9)
			if i == 19 {
				priority = 1
			}
			pod.Spec.Priority = &priority
			b.setPod(bound(pod, fmt.Sprintf("node-%03d", i)))
		}
	}
	chosen := func(text string) string {
		b := benchOf(t, text, nodesNamed(20)...)
		fill(b)
		pod := plugin.NewPod(preemptor())
		_, err := b.place(pod, podkey.Of(pod.Pod), nil)
		var fit *FitError
		if !errors.As(err, &fit) {
			t.Fatal(err)
		}
		return b.preempt(pod, fit, nil).node.Name
	}
	const args = "profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: %d, minCandidateNodesAbsolute: %d}}]}]"
	if got := chosen(""); got != "node-019" {
		t.Errorf("all compared: %s", got)
	}
	if got := chosen(fmt.Sprintf(args, 0, 1)); got != "node-001" { // the search begins at the number of the attempt
		t.Errorf("one compared: %s", got)
	}
	if got := chosen(fmt.Sprintf(args, 90, 1)); got == "node-019" { // 18 from the second node on
		t.Errorf("18 compared: %s", got)
	}
	if got := chosen(fmt.Sprintf(args, 95, 1)); got != "node-019" {
		t.Errorf("19 compared: %s", got)
	}

	text := "profiles: [{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]"
	low := testPod("low", "1", "")
	inWorldOf(t, configured(t, text), []runtime.Object{testNode("node-1", "z", "1", "8Gi"), bound(low, "node-1")}, func(w *world) {
		pod := testPod("in", "1", "")
		pod.Spec.Priority = &important
		w.createPod(pod)
		w.wantCondition("in", corev1.PodReasonUnschedulable, "Insufficient cpu")
		if synctest.Wait(); w.deletions.Load() > 0 || w.pod("low").Spec.NodeName != "node-1" || w.ledger.Scheduling.Counts().Preemptions > 0 {
			t.Error("a pod was evicted")
		}
		if message := w.pod("in").Status.Conditions[0].Message; strings.Contains(message, "preemption") {
			t.Errorf("it speaks of preemption: %s", message)
		}
	})
}

// TestLoopWithProfiles: the whole way of pods of two profiles, and of one that nobody serves.
func TestLoopWithProfiles(t *testing.T) {
	objects := []runtime.Object{bound(testPod("there", "1", "2Gi"), "node-001")}
	for _, n := range nodesNamed(3) {
		objects = append(objects, n)
	}
	inWorldOf(t, packing(t), objects, func(w *world) {
		for i := range 3 {
			w.createPod(by("packer", testPod(fmt.Sprint("packed-", i), "1", "2Gi")))
		}
		w.createPod(by("nobody", testPod("foreign", "1", "")))
		w.createPod(by("packer", testPod("large", "99", "")))
		for i := range 3 {
			w.wantNode(fmt.Sprint("packed-", i), "node-001")
		}
		w.createPod(testPod("default", "1", "2Gi"))
		synctest.Wait()
		if node := w.pod("default").Spec.NodeName; node == "" || node == "node-001" {
			t.Errorf("a pod of the default profile is on %q", node)
		}
		w.wantNode("foreign", "")
		if w.attempts("packer", numbers.Scheduled) != 3 || w.attempts("packer", numbers.Unschedulable) == 0 ||
			w.attempts("default-scheduler", numbers.Scheduled) != 1 {
			t.Error("attempts of profiles are not counted")
		}
		events, err := w.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if want := w.pod(e.InvolvedObject.Name).Spec.SchedulerName; e.Source.Component != want {
				t.Errorf("%s of %s comes from %s, want %s", e.Reason, e.InvolvedObject.Name, e.Source.Component, want)
			}
		}
		if len(events.Items) < 5 {
			t.Errorf("%d events, want at least 5", len(events.Items))
		}
	})
}

func TestBackoffOfAConfiguration(t *testing.T) {
	config := configured(t, "podInitialBackoffSeconds: 4\npodMaxBackoffSeconds: 10")
	q := newQueue(nil, (*numbers.Ledger)(nil).Series(), clock.RealClock{}, config.BackoffMin, config.BackoffMax)
	for attempts, want := range map[int]time.Duration{1: 4 * time.Second, 2: 8 * time.Second, 3: 10 * time.Second, 30: 10 * time.Second} {
		if got := q.backoff(attempts); got != want {
			t.Errorf("after %d attempts %v, want %v", attempts, got, want)
		}
	}
}

// TestVolumesOfAProfileComeLate: the second profile waits for five seconds only.
func TestVolumesOfAProfileComeLate(t *testing.T) {
	config := configured(t, `
profiles:
- schedulerName: default-scheduler
- {schedulerName: hasty, pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 5}}]}
`)
	inWorldOf(t, config, twoNodes(lateClass("csi.example.com"), lateClaim("one", "5Gi"), lateClaim("two", "5Gi")), func(w *world) {
		w.createPod(by("hasty", claiming(testPod("hasty", "", ""), "one")))
		w.createPod(claiming(testPod("patient", "", ""), "two"))
		time.Sleep(30 * time.Second)
		w.wantCondition("hasty", corev1.PodReasonSchedulerError, "timed out waiting for volumes to be bound")
		if conditions := w.pod("patient").Status.Conditions; len(conditions) > 0 {
			t.Errorf("the default profile gave up: %+v", conditions)
		}
	})
}

func TestJudgeByProfile(t *testing.T) {
	tainted := testNode("a", "z", "4", "8Gi")
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	config := configured(t, "profiles: [{schedulerName: lax, plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}, {schedulerName: default-scheduler}]")
	if j := judgedBy(t, config, by("lax", testPod("p", "1", "")), []*corev1.Node{tainted}); len(j.Nodes) != 1 || len(j.Nodes[0].Rejections) > 0 ||
		slices.Contains(j.Plugins, "TaintToleration") {
		t.Errorf("%+v", j)
	}
	if j := judgedBy(t, config, testPod("p", "1", ""), []*corev1.Node{tainted}); len(j.Nodes) != 1 || len(j.Nodes[0].Rejections) != 1 {
		t.Errorf("%+v", j)
	}
	if j := judgedBy(t, config, by("nobody", testPod("p", "1", "")), []*corev1.Node{tainted}); !j.Foreign || len(j.Nodes) > 0 {
		t.Errorf("%+v", j)
	}
}
