package differential

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/setpoint-io/setpoint/controllers/scheduler"
)

// schedulerPreemption asks both sides whom preemption would evict on each node for pods that fit nowhere, and which node it
// would choose. Upstream does not choose between equals.
func schedulerPreemption(t *testing.T) {
	metrics.Register()
	var asked, helped, several int
	excused := map[string]int{}
	var differ []string
	for i := range *worlds {
		seed := *seed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			w := newPreemption(newGenerator(seed))
			ours, theirs := evictors(t, w)
			for _, pod := range w.pending {
				want, fits := theirs.evictions(t, pod)
				if fits {
					continue
				}
				got := ours(pod)
				asked++
				helped, several = helped+min(1, len(want)), several+min(1, len(want)/2)
				difference := ""
				if a, b := told(got), told(want); a != b {
					difference = fmt.Sprintf("we would evict\n%supstream\n%s", a, b)
				} else if len(got) > 1 && !theirs.mayChoose(t, got[0].node, want) {
					difference = fmt.Sprintf("we would choose %s of\n%s", got[0].node, b)
				}
				if difference == "" {
					continue
				}
				if why := w.evictionExcuse(pod); why != "" {
					excused[why]++
					continue
				}
				text := fmt.Sprintf("seed %d: %s: %s", seed, pod.Name, difference)
				if len(differ) < reportsMax {
					text += "\n" + w.describe(pod)
				}
				differ = append(differ, text)
			}
		})
	}
	for _, text := range differ {
		t.Error(text)
	}
	t.Logf("%d worlds from seed %d: %d pods that fit nowhere, %d helped by preemption, %d of them on several nodes; %d differ",
		*worlds, *seed, asked, helped, several, len(differ))
	for why, n := range excused {
		t.Logf("excused %d times: %s", n, why)
	}
	if several == 0 {
		t.Error("nothing was compared")
	}
}

// evictionExcuse is why the victims for a pod may differ; empty if they may not.
func (w *placement) evictionExcuse(pod *corev1.Pod) string {
	spreads := slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	})
	leaves := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && *p.Spec.Priority < *pod.Spec.Priority }
	if spreads && slices.ContainsFunc(w.placed, leaves) {
		return "upstream takes a terminating victim from the counts of PodTopologySpread, which leave terminating pods out"
	}
	for _, name := range w.exclusiveClaims(pod) {
		if users := w.users(name); len(users) > 1 || len(users) == 1 && users[0].Namespace != pod.Namespace {
			return "upstream counts the users of a ReadWriteOncePod claim by its name in any namespace, and several as one"
		}
	}
	return ""
}

// exclusiveClaims are the names of the pod's claims that one pod may use.
func (w *placement) exclusiveClaims(pod *corev1.Pod) (names []string) {
	for _, o := range w.others {
		claim, is := o.(*corev1.PersistentVolumeClaim)
		if is && claim.Namespace == pod.Namespace && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) && uses(pod, claim.Name) > 0 {
			names = append(names, claim.Name)
		}
	}
	return names
}

// users has each placed pod once for each volume with a claim of that name.
func (w *placement) users(name string) (all []*corev1.Pod) {
	for _, p := range w.placed {
		for range uses(p, name) {
			all = append(all, p)
		}
	}
	return all
}

func uses(pod *corev1.Pod, claim string) (n int) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim {
			n++
		}
	}
	return n
}

// evicted is what is evicted from a node, the most important first.
type evicted struct {
	node       string
	victims    []*corev1.Pod
	violations int
}

// told writes the evictions by node.
func told(all []evicted) string {
	var lines []string
	for _, e := range all {
		var names []string
		for _, victim := range e.victims {
			names = append(names, victim.Name)
		}
		lines = append(lines, fmt.Sprintf("  %s: %s, %d protected\n", e.node, strings.Join(names, " "), e.violations))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// startsFrom is when the first pods started, in seconds.
const startsFrom = 9e8

// newPreemption is a world that is full of pods with lower priorities, some of them protected by budgets.
func newPreemption(g *generator) *placement {
	w := newPlacement(g)
	for range placementPodsMax {
		p := w.pod()
		p.Spec.NodeName = pick(g, w.nodes...).Name
		w.placed = append(w.placed, p)
	}
	w.leavePortsToOne()
	starting := map[string]bool{}
	for i, p := range w.placed {
		p.Spec.Priority = new(int32(g.IntN(4)) - 1)
		p.CreationTimestamp = metav1.NewTime(time.Unix(startsFrom, 0))
		if g.chance(6) && !starting[p.Spec.NodeName] { // upstream does not choose between two that have not started
			starting[p.Spec.NodeName] = true
			continue
		}
		p.Status.StartTime = new(metav1.NewTime(time.Unix(startsFrom+int64(100*g.IntN(1e5)+i), 0))) // all before a bubble begins
	}
	for _, p := range w.pending {
		p.Spec.Priority = new(int32(g.IntN(5)))
		if g.chance(8) {
			p.Spec.PreemptionPolicy = new(corev1.PreemptNever)
		}
	}
	for i := range g.IntN(4) {
		w.others = append(w.others, w.budget(i))
	}
	return w
}

// leavePortsToOne takes ports from placed pods so that no two of a node have one in common: upstream takes the port for free when
// the first of them goes.
func (w *placement) leavePortsToOne() {
	taken := map[string]bool{}
	for _, p := range w.placed {
		for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range containers {
				containers[i].Ports = slices.DeleteFunc(containers[i].Ports, func(port corev1.ContainerPort) bool {
					key := fmt.Sprint(p.Spec.NodeName, port.HostPort, cmp.Or(port.Protocol, corev1.ProtocolTCP))
					had := taken[key]
					taken[key] = true
					return had
				})
			}
		}
	}
}

func (w *placement) budget(i int) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: w.meta(fmt.Sprint("budget-", i))}
	b.Namespace = pick(w.generator, placementNamespace, "n1")
	b.Spec.MinAvailable = new(intstr.FromInt32(1))
	if !w.chance(8) {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: w.labels("app", "tier")}
	}
	b.Status.DisruptionsAllowed = int32(w.IntN(3))
	for _, p := range w.placed {
		if w.chance(8) {
			b.Status.DisruptedPods = map[string]metav1.Time{p.Name: {}}
		}
	}
	return b
}

// evictors are both sides over the objects of a world.
func evictors(t *testing.T, w *placement) (ours func(*corev1.Pod) []evicted, theirs *upstreamEvictor) {
	theirs = &upstreamEvictor{}
	factory := informed(t, w, func(ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory) {
		theirs.side = newUpstreamSide(ctx, t, w, client, factory)
	})
	theirs.budgets = w.budgets()
	judge := scheduler.NewJudge(scheduler.Config{Informers: factory})
	return func(pod *corev1.Pod) (all []evicted) {
		evictions, err := judge.Evictions(pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range evictions {
			all = append(all, evicted{e.Node, e.Victims, e.Violations})
		}
		return all
	}, theirs
}

// budgets come in the order in which we count: which of several that cover a pod counts is otherwise chance.
func (w *placement) budgets() (all []*policyv1.PodDisruptionBudget) {
	for _, o := range w.others {
		if b, is := o.(*policyv1.PodDisruptionBudget); is {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b *policyv1.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// upstreamEvictor is upstream's plugin of preemption, which asks the others.
type upstreamEvictor struct {
	side    *upstreamSide
	budgets []*policyv1.PodDisruptionBudget
}

// evictions are those that help on each node; it tells whether the pod fits somewhere without.
func (u *upstreamEvictor) evictions(t *testing.T, pod *corev1.Pod) (all []evicted, fits bool) {
	ctx, state := t.Context(), framework.NewCycleState()
	statuses, fits := u.statuses(ctx, t, state, pod)
	if eligible, _ := u.side.preemption.PodEligibleToPreemptOthers(ctx, pod, nil); fits || !eligible {
		return nil, fits
	}
	infos := u.side.framework.MutableSnapshotSharedLister().NodeInfos()
	nodes, err := statuses.NodesForStatusCode(infos, fwk.Unschedulable)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) == 0 {
		return nil, false
	}
	n := int32(len(nodes)) + 1 // one more than there are: all are looked at
	candidates, _, err := u.side.preemption.Evaluator.DryRunPreemption(ctx, state, pod, nodes, u.budgets, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range candidates {
		all = append(all, evicted{c.Name(), c.Victims().Pods, int(c.Victims().NumPDBViolations)})
	}
	return all, false
}

// statuses are why each node refuses the pod, as the scheduler collects them.
func (u *upstreamEvictor) statuses(ctx context.Context, t *testing.T, state fwk.CycleState, pod *corev1.Pod) (all *framework.NodeToStatus, fits bool) {
	all = framework.NewDefaultNodeToStatus()
	among, status, _ := u.side.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			t.Fatal(status)
		}
		all.SetAbsentNodesStatus(status)
		return all, false
	}
	for _, node := range u.side.nodes {
		name := node.Node().Name
		if !among.AllNodes() && !among.NodeNames.Has(name) {
			continue
		}
		status := u.side.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if status.IsSuccess() {
			return nil, true
		}
		all.Set(name, status)
	}
	return all, false
}

// mayChoose tells whether upstream may choose the node: it takes one of the best at random.
func (u *upstreamEvictor) mayChoose(t *testing.T, node string, of []evicted) bool {
	var candidates []preemption.Candidate
	for _, e := range of {
		candidates = append(candidates, candidate{e})
	}
	for range *runs {
		if u.side.preemption.Evaluator.SelectCandidate(t.Context(), candidates).Name() == node {
			return true
		}
	}
	return false
}

// candidate is a node of which upstream chooses.
type candidate struct{ evicted }

func (c candidate) Name() string { return c.node }
func (c candidate) Victims() *extenderv1.Victims {
	return &extenderv1.Victims{Pods: c.victims, NumPDBViolations: int64(c.violations)}
}
func (c candidate) NumPodGroupDisruptions() int { return 0 }

// noNominations has no pod that is promised room.
type noNominations struct{ fwk.PodNominator }

func (noNominations) NominatedPodsForNode(string) []fwk.PodInfo { return nil }
