package daemonset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

const (
	worlds     = 400
	stormSteps = 80  // in which nodes and templates change and pods fail
	calmSteps  = 400 // at most, in which all pods become ready
)

// simulation is a cluster with one DaemonSet, without any API: scheduler and nodes are played by chance.
type simulation struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	ds      *appsv1.DaemonSet
	nodes   map[string]*corev1.Node
	pods    map[types.UID]*corev1.Pod
	backoff *backoff
	hash    int
	born    int
	now     time.Time
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), backoff: newBackoff(),
		nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, now: now}
	surge, unavailable := int32(0), int32(1+s.random.IntN(3))
	if s.chance(2) {
		surge, unavailable = unavailable, 0
	}
	s.ds = newSet(limits(surge, unavailable))
	if s.chance(6) {
		onDelete(s.ds)
	}
	if s.chance(3) {
		s.ds.Spec.MinReadySeconds = 3
	}
	if s.chance(3) {
		blueOnly(s.ds)
	}
	for range 1 + s.random.IntN(7) {
		s.changeNode()
	}
	return s
}

// chance is true once in n times.
func (s *simulation) chance(n int) bool { return s.random.IntN(n) == 0 }

func (s *simulation) observed() observed {
	seen := observed{settled: true, hash: fmt.Sprint(s.hash), wait: func(node string) time.Duration { return s.backoff.wait(s.ds, node, s.now) }}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		seen.nodes = append(seen.nodes, s.nodes[name])
	}
	for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
		seen.pods = append(seen.pods, s.pods[uid])
	}
	return seen
}

// step plans once, judges the plan, and carries it out; idle tells that there was nothing to do.
func (s *simulation) step() (idle bool) {
	todo := plan(s.ds, s.observed(), s.now)
	s.judge(todo)
	for _, node := range todo.create {
		p := newPod(s.ds, fmt.Sprint(s.hash), node)
		s.born++
		p.Name, p.UID = fmt.Sprintf("p%05d", s.born), types.UID(fmt.Sprintf("p%05d", s.born))
		p.CreationTimestamp = metav1.NewTime(s.now)
		s.pods[p.UID] = p
	}
	for _, p := range todo.remove {
		if todo.ended[p.UID] && p.Status.Phase == corev1.PodFailed {
			s.backoff.next(s.ds, nodeOf(p), s.now)
		}
		p.DeletionTimestamp = &metav1.Time{Time: s.now}
		if p.Spec.NodeName == "" {
			delete(s.pods, p.UID)
		}
	}
	s.now = s.now.Add(time.Second)
	return len(todo.create) == 0 && len(todo.remove) == 0
}

// on are the living pods of a node, without those of a plan that are removed.
func (s *simulation) on(node string, without []*corev1.Pod) (living []*corev1.Pod) {
	for _, p := range s.observed().pods {
		if nodeOf(p) == node && podstate.Active(p) && !slices.Contains(without, p) {
			living = append(living, p)
		}
	}
	return living
}

func (s *simulation) available(p *corev1.Pod) bool {
	wait, ready := podstate.AvailableIn(p, time.Duration(s.ds.Spec.MinReadySeconds)*time.Second, s.now)
	return ready && wait == 0
}

func (s *simulation) current(p *corev1.Pod) bool { return current(s.ds, fmt.Sprint(s.hash), p) }

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("world %d at %v: %s", s.seed, s.now.Sub(now), fmt.Sprintf(format, args...))
}

// judge checks what the package promises of each single plan.
func (s *simulation) judge(todo todo) {
	s.t.Helper()
	fit, fitting := fitOf(s.ds), 0
	for _, n := range s.nodes {
		if fit.of(n).run {
			fitting++
		}
	}
	surge, unavailable := bounds(s.ds, fitting)
	lacking, surging, beside, taken := 0, 0, 0, 0
	for name, n := range s.nodes {
		before, after := s.on(name, nil), s.on(name, todo.remove)
		creates := slices.Contains(todo.create, name)
		if limit := 1 + min(1, surge); creates && len(after)+1 > limit || slices.Contains(todo.create, name) && !fit.of(n).run {
			s.fail("a pod too many on node %s", name)
		}
		if slices.ContainsFunc(before, func(p *corev1.Pod) bool { return !s.current(p) }) {
			if creates && slices.ContainsFunc(before, s.available) {
				beside++
			}
			if slices.ContainsFunc(before, func(p *corev1.Pod) bool { return s.current(p) && !s.available(p) }) {
				surging++
			}
		}
		if fit.of(n).run && !slices.ContainsFunc(after, s.available) {
			lacking++
			if slices.ContainsFunc(before, s.available) && !manyOld(s, before) {
				taken++
			}
		}
	}
	if taken > 0 && lacking > unavailable {
		s.fail("a rollout takes %d available pods, so that %d nodes lack one; %d may", taken, lacking, unavailable)
	}
	if beside > 0 && beside+surging > surge {
		s.fail("%d pods beside available ones, %d may", beside+surging, surge)
	}
}

// manyOld tells of a node on which two rollouts overlap: the older pod stays, available or not, as upstream.
func manyOld(s *simulation, pods []*corev1.Pod) bool {
	return len(pods) > 1 && !slices.ContainsFunc(pods, s.current)
}

// changeNode adds, removes, taints or labels a node.
func (s *simulation) changeNode() {
	name := string(rune('a' + s.random.IntN(8)))
	n := s.nodes[name]
	if n == nil {
		n = node(name, blue)
		s.nodes[name] = n
		return
	}
	n = n.DeepCopy()
	s.nodes[name] = n
	switch s.random.IntN(5) {
	case 0:
		delete(s.nodes, name)
		maps.DeleteFunc(s.pods, func(_ types.UID, p *corev1.Pod) bool { return p.Spec.NodeName == name }) // the pod garbage collector
	case 1:
		n.Spec.Taints = nil
		blue(n)
	case 2:
		tainted(corev1.TaintEffectNoSchedule, "x")(n)
	case 3:
		tainted(corev1.TaintEffectNoExecute, "x")(n)
	case 4:
		n.Labels = nil
	}
}

// live is a second of all pods' lives. In a storm they fail, too.
func (s *simulation) live(storm bool) {
	for _, p := range s.observed().pods {
		switch {
		case s.chance(2):
		case p.DeletionTimestamp != nil:
			delete(s.pods, p.UID)
		case p.Spec.NodeName == "":
			if s.nodes[nodeOf(p)] != nil {
				p.Spec.NodeName = nodeOf(p)
			}
		case podstate.Finished(p):
		case storm && s.chance(20):
			failed(p)
		case storm && s.chance(20):
			unready(p)
		case !podstate.Ready(p):
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now)}}
		}
	}
}

// judgeEnd: every fitting node has exactly one pod, of the present template if that is rolled out.
func (s *simulation) judgeEnd() {
	s.t.Helper()
	fit := fitOf(s.ds)
	for name, n := range s.nodes {
		pods, v := s.on(name, nil), fit.of(n)
		if v.run && len(pods) != 1 || !v.keep && len(pods) > 0 || len(pods) > 1 {
			s.fail("%d pods on node %s, which is %+v", len(pods), name, v)
		}
		if v.run && s.ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType && !s.current(pods[0]) {
			s.fail("an old pod on node %s", name)
		}
	}
	for _, p := range s.pods {
		if s.nodes[nodeOf(p)] == nil {
			s.fail("pod %s waits for a node that is gone", p.Name)
		}
	}
	if status := plan(s.ds, s.observed(), s.now).status; status.NumberAvailable != status.DesiredNumberScheduled || status.NumberUnavailable != 0 {
		s.fail("status %+v", status)
	}
}

// In generated worlds no plan breaks a limit, and in the end every fitting node has its pod.
func TestGeneratedWorlds(t *testing.T) {
	for seed := range uint64(worlds) {
		s := newSimulation(t, seed)
		for range stormSteps {
			s.step()
			s.live(true)
			if s.chance(8) {
				s.changeNode()
			}
			if s.chance(25) {
				s.hash++
			}
		}
		idle := 0
		for i := 0; idle < 30; i++ {
			if i == calmSteps {
				s.fail("no end: %s", did(plan(s.ds, s.observed(), s.now)))
			}
			if idle++; !s.step() || plan(s.ds, s.observed(), s.now).again > 0 {
				idle = 0
			}
			s.live(false)
		}
		s.judgeEnd()
	}
}
