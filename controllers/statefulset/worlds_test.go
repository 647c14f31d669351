package statefulset

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
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	worlds     = 400
	stormSteps = 80  // in which the set changes and pods fail
	calmSteps  = 400 // at most, in which all pods become ready
)

// simulation is a cluster with one StatefulSet, without any API: users and nodes are played by chance.
type simulation struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	set      *appsv1.StatefulSet
	pods     map[string]*corev1.Pod // by name, as in the API
	template int                    // its number; the set's first is 1
	born     int
	now      time.Time
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 7)), set: newSet(1), pods: map[string]*corev1.Pod{}, template: 1,
		now: time.Unix(1e9, 0)}
	s.set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	if s.chance(2) {
		s.set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	}
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(s.random.IntN(3)))}
	if s.chance(2) {
		rolling.MaxUnavailable = ptr.To(intstr.FromInt32(int32(1 + s.random.IntN(3))))
	}
	s.set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: rolling}
	if s.chance(3) {
		s.set.Spec.MinReadySeconds = 3
	}
	if s.chance(3) {
		s.set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: int32(s.random.IntN(3))}
	}
	s.set.Spec.Replicas = new(int32(s.random.IntN(6)))
	s.set.Status = appsv1.StatefulSetStatus{CurrentRevision: "r1", UpdateRevision: "r1"}
	return s
}

// chance is true once in n times.
func (s *simulation) chance(n int) bool { return s.random.IntN(n) == 0 }

func (s *simulation) observed() observed {
	revision := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	seen := observed{
		claim: func(string) *corev1.PersistentVolumeClaim { return nil }, current: revision(s.set.Status.CurrentRevision),
		update: revision(fmt.Sprintf("r%d", s.template)), currentTemplate: &s.set.Spec.Template,
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		seen.pods = append(seen.pods, s.pods[name])
	}
	return seen
}

// step plans once, judges the plan, and carries it out; idle tells that there was nothing to do.
func (s *simulation) step() (idle bool) {
	todo := plan(s.set, s.observed(), s.now)
	s.judge(todo)
	for _, u := range todo.create {
		pod := u[len(u)-1].pod
		if s.pods[pod.Name] != nil {
			s.fail("a second %s", pod.Name)
		}
		s.born++
		pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprint(s.born)), metav1.NewTime(s.now)
		pod.Status.Phase = corev1.PodPending
		s.pods[pod.Name] = pod
	}
	for _, u := range slices.Concat(todo.mend, todo.remove) {
		if u[0].verb == deletePod {
			s.pods[u[0].pod.Name].DeletionTimestamp = &metav1.Time{Time: s.now}
		}
	}
	s.set.Status = todo.status
	s.set.Status.CurrentReplicas -= todo.outdated
	s.now = s.now.Add(time.Second)
	return len(todo.create)+len(todo.mend)+len(todo.remove) == 0 && todo.again == 0
}

// judge fails on what no plan may do, whatever the world is like.
func (s *simulation) judge(todo todo) {
	p := &planner{set: s.set, now: s.now}
	if s.set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement {
		if len(todo.create) > 1 {
			s.fail("an ordered set creates %d pods at once", len(todo.create))
		}
		for _, u := range todo.create {
			ordinal := p.ordinal(u[len(u)-1].pod)
			for below := firstOrdinal(s.set); below < ordinal; below++ {
				if pod := s.pods[podName(s.set, below)]; pod == nil || !p.available(pod) {
					s.fail("ordinal %d before %d is available", ordinal, below)
				}
			}
		}
	}
	unavailable, taken := wished(s.set), 0
	for _, pod := range s.pods {
		if isWanted(s.set, p.ordinal(pod)) && p.available(pod) {
			unavailable--
		}
	}
	for _, u := range todo.remove {
		pod := u[0].pod
		if pod.DeletionTimestamp != nil {
			s.fail("%s is deleted twice", pod.Name)
		}
		ordinal := p.ordinal(pod)
		if isWanted(s.set, ordinal) && ordinal-firstOrdinal(s.set) < partition(s.set.Spec.UpdateStrategy.RollingUpdate) {
			s.fail("%s is below the partition", pod.Name)
		}
		if isWanted(s.set, ordinal) && p.available(pod) {
			taken++
		}
	}
	if limit := maxUnavailable(s.set.Spec.UpdateStrategy.RollingUpdate, wished(s.set)); taken > 0 && unavailable+taken > limit {
		s.fail("%d are unavailable, and %d more would be: the limit is %d", unavailable, taken, limit)
	}
}

// storm changes the set, or what becomes of one pod.
func (s *simulation) storm() {
	switch {
	case s.chance(12):
		s.set.Spec.Replicas = new(int32(s.random.IntN(6)))
	case s.chance(15):
		s.template++
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		pod := s.pods[name]
		switch {
		case pod.DeletionTimestamp != nil && s.chance(3):
			delete(s.pods, name)
		case s.chance(4):
			s.setReady(pod, true)
		case s.chance(12):
			s.setReady(pod, false)
		case s.chance(25):
			pod.Status.Phase = corev1.PodFailed
		}
	}
}

// calm ends what is ending and readies the rest.
func (s *simulation) calm() {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if pod := s.pods[name]; pod.DeletionTimestamp != nil {
			delete(s.pods, name)
		} else if pod.Status.Phase != corev1.PodFailed {
			s.setReady(pod, true)
		}
	}
}

func (s *simulation) setReady(pod *corev1.Pod, ready bool) {
	if pod.Status.Phase == corev1.PodFailed {
		return
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Phase = corev1.PodRunning
	if len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Status != status {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(s.now)}}
	}
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("world %d at %v: %s", s.seed, s.now.Sub(time.Unix(1e9, 0)), fmt.Sprintf(format, args...))
}

// TestWorlds: whatever happens, no plan breaks the order, the partition or the limit; and when all is calm again, each
// wanted ordinal has one pod, of the newest template above the partition.
func TestWorlds(t *testing.T) {
	for seed := range uint64(worlds) {
		s := newSimulation(t, seed)
		for range stormSteps {
			s.storm()
			s.step()
		}
		quiet := 0
		for step := 0; quiet < 3; step++ {
			if step == calmSteps {
				s.fail("not at rest after %d steps: %d pods", calmSteps, len(s.pods))
			}
			s.calm()
			if quiet++; !s.step() {
				quiet = 0
			}
		}
		if len(s.pods) != wished(s.set) {
			s.fail("%d pods, wanted %d", len(s.pods), wished(s.set))
		}
		for _, pod := range s.pods {
			ordinal, _ := ordinalOf(s.set, pod.Name)
			above := ordinal-firstOrdinal(s.set) >= partition(s.set.Spec.UpdateStrategy.RollingUpdate)
			if !isWanted(s.set, ordinal) || above && revisionOf(pod) != fmt.Sprintf("r%d", s.template) {
				s.fail("%s is left at %s", pod.Name, revisionOf(pod))
			}
		}
	}
}
