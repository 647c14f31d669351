package deployment

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// world plays API and ReplicaSet controller for plans: a ReplicaSet's pods come
// at once, become available at random, and sometimes fail again.
type world struct {
	random *rand.Rand
	d      *appsv1.Deployment
	sets   []*appsv1.ReplicaSet
	now    time.Time
	seq    int
}

// step plans once, carries it out, and lets pods move on; it reports whether
// anything was planned.
func (w *world) step() bool {
	w.now = w.now.Add(time.Second)
	t := plan(w.d, observed{sets: w.sets}, w.now)
	if t.create != nil {
		w.seq++
		t.create.UID = types.UID(fmt.Sprint("rs-", w.seq))
		t.create.CreationTimestamp = metav1.NewTime(w.now)
		t.create.Generation = 1
		w.sets = append(w.sets, t.create)
	}
	for _, c := range t.change {
		c.from.Spec, c.from.Annotations = c.to.Spec, c.to.Annotations
	}
	for _, gone := range t.remove {
		for i, rs := range w.sets {
			if rs == gone {
				w.sets = append(w.sets[:i:i], w.sets[i+1:]...)
				break
			}
		}
	}
	w.d.Status = t.status
	return t.create != nil || len(t.change) > 0 || len(t.remove) > 0
}

// live lets the pods of every ReplicaSet move; failing says whether available
// ones may fail.
func (w *world) live(failing bool) {
	for _, rs := range w.sets {
		n, s := replicasOf(rs.Spec.Replicas), &rs.Status
		s.Replicas, s.ObservedGeneration = n, rs.Generation
		s.AvailableReplicas = min(s.AvailableReplicas, n)
		if missing := n - s.AvailableReplicas; missing > 0 {
			s.AvailableReplicas += w.random.Int32N(missing + 1)
		}
		if failing && s.AvailableReplicas > 0 && w.random.IntN(5) == 0 {
			s.AvailableReplicas--
		}
		s.ReadyReplicas = s.AvailableReplicas
	}
}

func (w *world) available() int32 { return sumAvailable(w.sets) }

// In generated rollouts the wished pods never exceed replicas + surge, a plan
// never takes available pods below replicas - maxUnavailable, and every rollout
// ends when pods become well.
func TestGeneratedRollouts(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		replicas, surge, unavailable := random.IntN(12), random.IntN(5), random.IntN(5)
		w := &world{random: random, d: newDeployment(replicas, surge, unavailable), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		most := int32(replicas + surge)
		for step := range 120 {
			if step%30 == 29 {
				w.d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("v", step)
				w.d.Generation++
			}
			before := w.available()
			w.step()
			if n := sumSpec(w.sets); n > most {
				t.Fatalf("seed %d step %d: %d pods wished, at most %d allowed", seed, step, n, most)
			}
			assertKept(t, w, before, seed, step)
			w.live(step%30 < 15)
		}
		for range 80 {
			w.step()
			w.live(false)
		}
		if s := w.d.Status; s.UpdatedReplicas != int32(replicas) || s.Replicas != int32(replicas) {
			t.Fatalf("seed %d (%d, %d, %d): the rollout did not end: %+v", seed, replicas, surge, unavailable, s)
		}
		if w.step() {
			t.Fatalf("seed %d: a finished rollout is still changed", seed)
		}
	}
}

// assertKept checks that the plan, which may have shrunk ReplicaSets, left
// enough available pods: those that remain when the unavailable go first.
func assertKept(t *testing.T, w *world, before int32, seed uint64, step int) {
	t.Helper()
	_, unavailable := bounds(w.d)
	least := min(before, replicasOf(w.d.Spec.Replicas)-unavailable)
	var left int32
	for _, rs := range w.sets {
		left += min(rs.Status.AvailableReplicas, replicasOf(rs.Spec.Replicas))
	}
	if left < least {
		t.Fatalf("seed %d step %d: %d available pods left of %d, at least %d needed", seed, step, left, before, least)
	}
}

// In generated scalings in the middle of rollouts the bound holds for the new
// number, and old and new keep existing side by side.
func TestScalingSpreads(t *testing.T) {
	for _, c := range []struct {
		name         string
		old, current int32
		from, to     int32
		surge        int
		wantOld      int32
		wantCurrent  int32
	}{
		{"up", 8, 5, 10, 20, 3, 14, 9},
		{"down", 8, 5, 10, 5, 3, 5, 3},
		{"to nothing", 8, 5, 10, 0, 3, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(int(c.to), c.surge, 2)
			w := &world{d: d, now: time.Now()}
			for i, n := range []int32{c.old, c.current} {
				template := d.Spec.Template
				if i == 0 {
					template = *template.DeepCopy()
					template.Spec.Containers[0].Image = "v0"
				}
				w.sets = append(w.sets, &appsv1.ReplicaSet{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Annotations: map[string]string{
						desiredAnnotation: fmt.Sprint(c.from), maxAnnotation: fmt.Sprint(c.from + int32(c.surge))}},
					Spec: appsv1.ReplicaSetSpec{Replicas: &n, Template: template},
				})
			}
			w.step()
			old, current := *w.sets[0].Spec.Replicas, *w.sets[1].Spec.Replicas
			if old != c.wantOld || current != c.wantCurrent {
				t.Errorf("got %d and %d, want %d and %d", old, current, c.wantOld, c.wantCurrent)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	percent := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	for _, c := range []struct {
		replicas               int
		surge, unavailable     string
		wantSurge, wantUnavail int32
	}{
		{3, "25%", "25%", 1, 0},
		{4, "25%", "25%", 1, 1},
		{10, "25%", "25%", 3, 2},
		{1, "0%", "25%", 0, 1},
		{0, "25%", "25%", 0, 0},
	} {
		d := newDeployment(c.replicas, 0, 0)
		d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = percent(c.surge), percent(c.unavailable)
		if s, u := bounds(d); s != c.wantSurge || u != c.wantUnavail {
			t.Errorf("%d replicas, %s, %s: got %d, %d", c.replicas, c.surge, c.unavailable, s, u)
		}
	}
}
