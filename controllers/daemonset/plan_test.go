package daemonset

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// hash names the present template in these tests, oldHash another one.
const (
	hash    = "new"
	oldHash = "old"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// newSet is a DaemonSet that may lack one pod during a rollout, changed by the options.
func newSet(options ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent"}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "ns", Generation: 2},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "agent:1"}}},
			},
		},
	}
	limits(0, 1)(ds)
	for _, o := range options {
		o(ds)
	}
	return ds
}

func limits(surge, unavailable int32) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable))}}
	}
}

func onDelete(ds *appsv1.DaemonSet) {
	ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
}
func tenReady(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 10 }
func blueOnly(ds *appsv1.DaemonSet) {
	ds.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"}
}
func onNodeA(ds *appsv1.DaemonSet)   { ds.Spec.Template.Spec.NodeName = "a" }
func hostNet(ds *appsv1.DaemonSet)   { ds.Spec.Template.Spec.HostNetwork = true }
func beingGone(ds *appsv1.DaemonSet) { ds.DeletionTimestamp = &metav1.Time{Time: now} }

func tainted(effect corev1.TaintEffect, keys ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, key := range keys {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
		}
	}
}

func blue(n *corev1.Node) { n.Labels = map[string]string{"color": "blue"} }

func node(name string, options ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, o := range options {
		o(n)
	}
	return n
}

// pod is a ready pod of the present template, an hour old, changed by the options. Its name begins with that of its node.
func pod(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{"app": "agent", hashLabel: hash}},
		Spec: corev1.PodSpec{NodeName: name[:1]},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func old(p *corev1.Pod)       { p.Labels[hashLabel] = oldHash }
func unready(p *corev1.Pod)   { p.Status.Conditions = nil }
func justReady(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = ago(time.Second) }
func fourSeconds(p *corev1.Pod) {
	p.Status.Conditions[0].LastTransitionTime = ago(4 * time.Second)
}
func dying(p *corev1.Pod)   { p.DeletionTimestamp = &metav1.Time{Time: now} }
func failed(p *corev1.Pod)  { p.Status.Phase = corev1.PodFailed; unready(p) }
func done(p *corev1.Pod)    { p.Status.Phase = corev1.PodSucceeded; unready(p) }
func young(p *corev1.Pod)   { p.CreationTimestamp = ago(time.Minute) }
func waiting(p *corev1.Pod) { unready(p); p.Spec.NodeName = ""; pin(&p.Spec, p.Name[:1]) }

func two() []*corev1.Node { return []*corev1.Node{node("a"), node("b")} }

// did is a plan as text: "+node" for a creation, "-pod" for a deletion, then when to come back.
func did(t todo) string {
	var out []string
	for _, n := range t.create {
		out = append(out, "+"+n)
	}
	for _, p := range t.remove {
		out = append(out, "-"+p.Name)
	}
	slices.Sort(out)
	if t.again > 0 {
		out = append(out, t.again.String())
	}
	return strings.Join(out, " ")
}

type planCase struct {
	name  string
	ds    *appsv1.DaemonSet
	nodes []*corev1.Node
	pods  []*corev1.Pod
	want  string
}

func runPlans(t *testing.T, cases []planCase, seen observed) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			seen.nodes, seen.pods, seen.hash = c.nodes, c.pods, hash
			if got := did(plan(c.ds, seen, now)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestPodsOfNodes(t *testing.T) {
	noSchedule, noExecute := tainted(corev1.TaintEffectNoSchedule, "x"), tainted(corev1.TaintEffectNoExecute, "x")
	runPlans(t, []planCase{
		{"one each", newSet(), two(), nil, "+a +b"},
		{"nothing to do", newSet(), two(), []*corev1.Pod{pod("a"), pod("b", waiting)}, ""},
		{"too many", newSet(), two()[:1], []*corev1.Pod{pod("a1", young), pod("a2"), pod("a3", waiting)}, "-a1 -a3"},
		{"a dying pod is waited for", newSet(), two()[:1], []*corev1.Pod{pod("a", dying)}, ""},
		{"a dying pod with surge is not", newSet(limits(1, 0)), two()[:1], []*corev1.Pod{pod("a", dying)}, "+a"},
		{"one that ended before is not", newSet(), two()[:1], []*corev1.Pod{pod("a", dying, done)}, "+a"},
		{"failed and succeeded go", newSet(), two(), []*corev1.Pod{pod("a", failed), pod("b", done)}, "-a -b"},
		{"a taint repels", newSet(), []*corev1.Node{node("a", noSchedule), node("b")}, nil, "+b"},
		{"a taint lets pods stay", newSet(), []*corev1.Node{node("a", noSchedule)}, []*corev1.Pod{pod("a")}, ""},
		{"a taint evicts", newSet(), []*corev1.Node{node("a", noExecute)}, []*corev1.Pod{pod("a1"), pod("a2", dying)}, "-a1"},
		{"labels do not fit", newSet(blueOnly), []*corev1.Node{node("a"), node("b", blue)}, []*corev1.Pod{pod("a")}, "+b -a"},
		{"a node by name", newSet(onNodeA), two(), nil, "+a"},
		{"waiting for a node that is gone", newSet(), nil, []*corev1.Pod{pod("c1", waiting), pod("c2")}, "-c1"},
		{"the set is being deleted", newSet(beingGone), two(), []*corev1.Pod{pod("a1"), pod("a2")}, ""},
	}, observed{settled: true})
	runPlans(t, []planCase{{"the cache lags", newSet(), two(), []*corev1.Pod{pod("a1"), pod("a2")}, ""}}, observed{})
	runPlans(t, []planCase{{"own deletions are not seen yet", newSet(), two(), []*corev1.Pod{pod("a1"), pod("a2"), pod("b", old)}, ""}},
		observed{settled: true, deleting: map[types.UID]bool{"a2": true, "b": true}})
	runPlans(t, []planCase{
		{"failed ones wait", newSet(), two()[:1], []*corev1.Pod{pod("a", failed)}, "3s"},
		{"failed ones wait with surge too", newSet(limits(1, 0)), two()[:1], []*corev1.Pod{pod("a", failed)}, "3s"},
	}, observed{settled: true, wait: func(string) time.Duration { return 3 * time.Second }})
}

func TestRollout(t *testing.T) {
	three := append(two(), node("c"))
	runPlans(t, []planCase{
		{"one at a time", newSet(), three, []*corev1.Pod{pod("a", old), pod("b", old), pod("c", old)}, "-a"},
		{"two at a time", newSet(limits(0, 2)), three, []*corev1.Pod{pod("a", old), pod("b", old), pod("c", old)}, "-a -b"},
		{"a new one is not available", newSet(), three, []*corev1.Pod{pod("a", unready), pod("b", old), pod("c", old)}, ""},
		{"a new one is not for long enough", newSet(tenReady), three, []*corev1.Pod{pod("a", justReady), pod("b", old), pod("c", old)}, "9s"},
		{"an old one stops", newSet(), three, []*corev1.Pod{pod("a", old, dying), pod("b", old), pod("c", old)}, ""},
		{"unavailable old ones first", newSet(), three, []*corev1.Pod{pod("a", old), pod("b", old, unready), pod("c", old, unready)}, "-b -c"},
		{"what manage does comes first", newSet(), three, []*corev1.Pod{pod("a", old), pod("b", old)}, "+c"},
		{"by hand", newSet(onDelete), three, []*corev1.Pod{pod("a", old), pod("b", old), pod("c", old, unready)}, ""},
		{"neither limit", newSet(limits(0, 0)), three, []*corev1.Pod{pod("a", old), pod("b", old), pod("c", old)}, "-a"},
		{"surge", newSet(limits(2, 0)), three, []*corev1.Pod{pod("a", old), pod("b", old), pod("c", old)}, "+a +b"},
		{"surge is used up", newSet(limits(1, 0)), three, []*corev1.Pod{pod("a1", old), pod("a2", unready), pod("b", old), pod("c")}, ""},
		{"the new one took over", newSet(limits(1, 0)), three, []*corev1.Pod{pod("a1", old), pod("a2"), pod("b", old), pod("c")}, "-a1"},
		{"the old one fails beside the new one", newSet(limits(1, 0)), three,
			[]*corev1.Pod{pod("a1", old, unready), pod("a2", unready), pod("b", old), pod("c")}, "-a1"},
		{"nobody misses unavailable old ones", newSet(limits(1, 0)), three,
			[]*corev1.Pod{pod("a", old, unready), pod("b", old, unready), pod("c", old)}, "+a +b +c"},
		// Upstream keeps one time for all and so comes late for the second (test/differential, daemonset_test.go).
		{"new ones are ready one after the other", newSet(limits(2, 0), tenReady), three,
			[]*corev1.Pod{pod("a1", old), pod("a2", justReady), pod("b1", old), pod("b2", fourSeconds), pod("c", old)}, "6s"},
		{"the second of them", newSet(limits(2, 0), tenReady), three,
			[]*corev1.Pod{pod("a1", old), pod("a2", fourSeconds), pod("b1", old, dying), pod("b2"), pod("c")}, "6s"},
		// Upstream goes through its nodes in any order, so any of them may be first.
		{"surge takes nodes by their names", newSet(limits(1, 0)), three, []*corev1.Pod{pod("c", old), pod("b", old, young), pod("a", old)}, "+a"},
		{"misplaced ones stay while pods lack", newSet(limits(1, 0)), []*corev1.Node{node("a", tainted("NoSchedule", "x")), node("b")},
			[]*corev1.Pod{pod("a", old), pod("b", unready)}, ""},
		{"misplaced ones go when enough are there", newSet(limits(1, 0)), []*corev1.Node{node("a", tainted("NoSchedule", "x")), node("b")},
			[]*corev1.Pod{pod("a", old), pod("b")}, "-a"},
	}, observed{settled: true})
}

func TestFit(t *testing.T) {
	own := node("a", tainted(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable),
		tainted(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable))
	noNetwork := node("a", tainted(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable))
	for _, c := range []struct {
		name string
		ds   *appsv1.DaemonSet
		node *corev1.Node
		want verdict
	}{
		{"plain", newSet(), node("a"), verdict{true, true}},
		{"tolerations of its own", newSet(), own, verdict{true, true}},
		{"no network", newSet(), noNetwork, verdict{false, true}},
		{"no network is needed", newSet(hostNet), noNetwork, verdict{true, true}},
		{"only preferred elsewhere", newSet(), node("a", tainted(corev1.TaintEffectPreferNoSchedule, "x")), verdict{true, true}},
		{"another name", newSet(onNodeA), node("b"), verdict{}},
	} {
		if got := fitOf(c.ds).of(c.node); got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// A toleration of the template with seconds is replaced: daemon pods are never evicted for these taints.
func TestTolerations(t *testing.T) {
	soon := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}
	mine := corev1.Toleration{Key: "mine"}
	spec := &corev1.PodSpec{Tolerations: []corev1.Toleration{soon, mine}}
	got := tolerations(spec)
	if len(got) != 7 || got[0].TolerationSeconds != nil || got[1] != mine || spec.Tolerations[0] != soon {
		t.Errorf("%v from %v", got, spec.Tolerations)
	}
}

func TestNewPod(t *testing.T) {
	ds := newSet()
	ds.UID, ds.Annotations = "u", map[string]string{appsv1.DeprecatedTemplateGeneration: "3"}
	ds.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
		RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, {}}}}}
	before := ds.DeepCopy()
	p := newPod(ds, hash, "a")
	if diff := cmp.Diff(before, ds); diff != "" {
		t.Errorf("the DaemonSet was changed: %s", diff)
	}
	if nodeOf(p) != "a" || p.Spec.Affinity.PodAffinity == nil || len(p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("affinity %+v", p.Spec.Affinity)
	}
	if diff := cmp.Diff(map[string]string{"app": "agent", hashLabel: hash, generationLabel: "3"}, p.Labels); diff != "" {
		t.Error(diff)
	}
	if p.GenerateName != "agent-" || !metav1.IsControlledBy(p, ds) || !current(ds, hash, p) || !current(ds, "other", p) {
		t.Errorf("%+v", p.ObjectMeta)
	}
}

func TestStatus(t *testing.T) {
	nodes := []*corev1.Node{node("a"), node("b"), node("c"), node("d"), node("e", tainted(corev1.TaintEffectNoSchedule, "x"))}
	pods := []*corev1.Pod{pod("a"), pod("b", old, unready), pod("c", justReady), pod("e")}
	got := plan(newSet(tenReady), observed{settled: true, nodes: nodes, pods: pods, hash: hash}, now)
	want := appsv1.DaemonSetStatus{
		DesiredNumberScheduled: 4, CurrentNumberScheduled: 3, NumberMisscheduled: 1, NumberReady: 2,
		NumberAvailable: 1, NumberUnavailable: 3, UpdatedNumberScheduled: 2, ObservedGeneration: 2,
	}
	if diff := cmp.Diff(want, got.status); diff != "" || got.again != 9*time.Second {
		t.Errorf("again %v, %s", got.again, diff)
	}
	if g := plan(newSet(), observed{}, now).status.ObservedGeneration; g != 0 {
		t.Errorf("generation %d is observed, but nothing was done about it", g)
	}
}

func TestBackoff(t *testing.T) {
	b, ds := newBackoff(), newSet()
	at := now
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		b.next(ds, "a", at)
		if got := b.wait(ds, "a", at); got != want {
			t.Errorf("%v, want %v", got, want)
		}
		at = at.Add(want)
		if got := b.wait(ds, "a", at); got != 0 {
			t.Errorf("%v after the pause", got)
		}
	}
	for range 20 {
		b.next(ds, "a", at)
	}
	if got := b.wait(ds, "a", at); got != pauseMax {
		t.Errorf("%v, want %v at most", got, pauseMax)
	}
	newer := newSet()
	newer.Status.ObservedGeneration = 2
	if b.wait(newer, "a", at) != 0 || b.wait(ds, "b", at) != 0 || b.wait(ds, "a", at.Add(2*pauseMax+1)) != 0 {
		t.Error("a new generation, another node or a long time has to wait")
	}
	b.forgetNode("a")
	if b.wait(ds, "a", at) != 0 {
		t.Error("a node that is gone has to wait")
	}
}
