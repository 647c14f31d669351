package deployment

import (
	"fmt"
	"math"
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
			s.AvailableReplicas += w.random.Int32N(min(missing, 1000) + 1)
		}
		if failing && s.AvailableReplicas > 0 && w.random.IntN(5) == 0 {
			s.AvailableReplicas--
		}
		s.ReadyReplicas = s.AvailableReplicas
	}
}

func (w *world) available() int32 { return sumAvailable(w.sets) }

// In generated rollouts, where replicas, template, strategy and pause change at any time and together, a plan never
// raises the wished pods above replicas + surge, never takes available pods below replicas - maxUnavailable, and every
// rollout ends when pods become well.
func TestGeneratedRollouts(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := &world{random: random, d: newDeployment(random.IntN(12), random.IntN(5), random.IntN(5)), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		for step := range 120 {
			if random.IntN(8) == 0 {
				w.edit()
			}
			wished, available := sumSpec(w.sets), w.available()
			w.step()
			bound := replicasOf(w.d.Spec.Replicas) + surgeOf(w.d)
			if n := sumSpec(w.sets); n > max(wished, bound) {
				t.Fatalf("seed %d step %d: %d pods wished, at most %d allowed", seed, step, n, max(wished, bound))
			}
			if wished <= bound { // else the edit lowered the bound: it is met at once, in proportion, as upstream does
				assertKept(t, w, available, seed, step)
			}
			w.live(step%30 < 15)
		}
		w.d.Spec.Paused, w.d.Spec.Replicas = false, new(min(replicasOf(w.d.Spec.Replicas), 20))
		for range 120 {
			w.step()
			w.live(false)
		}
		replicas := replicasOf(w.d.Spec.Replicas)
		if s := w.d.Status; s.UpdatedReplicas != replicas || s.Replicas != replicas {
			t.Fatalf("seed %d (%d): the rollout did not end: %+v", seed, replicas, s)
		}
		if w.step() {
			t.Fatalf("seed %d: a finished rollout is still changed", seed)
		}
	}
}

// surgeOf is the strategy's surge in pods.
func surgeOf(d *appsv1.Deployment) int32 {
	surge, _ := bounds(d)
	return surge
}

// edit changes what a user's one apply changes: any of the fields, alone or together.
func (w *world) edit() {
	spec := &w.d.Spec
	changes := []func(){
		func() { spec.Template.Spec.Containers[0].Image = fmt.Sprint("v", w.random.IntN(4)) }, // also back to an earlier one
		func() { spec.Replicas = new(w.random.Int32N(20)) },
		func() {
			if w.random.IntN(8) == 0 {
				spec.Replicas = new(math.MaxInt32 - w.random.Int32N(4)) // nobody can count further
			}
		},
		func() { spec.Paused = !spec.Paused },
		func() { spec.MinReadySeconds = w.random.Int32N(3) },
		func() { spec.Strategy = newDeployment(0, w.random.IntN(5), w.random.IntN(5)).Spec.Strategy },
	}
	for _, change := range changes {
		if w.random.IntN(2) == 0 {
			change()
		}
	}
	w.d.Generation++
}

// A new image and more replicas in one apply, as in every Helm upgrade that scales: the old pods are scaled first, and
// the new ReplicaSet takes the surge only.
func TestScalingAndNewTemplateTogether(t *testing.T) {
	w := &world{d: newDeployment(10, 5, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
	for range 20 {
		w.step()
		w.live(false)
	}
	w.d.Spec.Replicas = new(int32(20))
	w.d.Spec.Template.Spec.Containers[0].Image = "v2"
	for range 3 {
		w.step()
		if n := sumSpec(w.sets); n > 25 {
			t.Fatalf("%d pods wished, at most 25 allowed", n)
		}
	}
	if len(w.sets) != 2 {
		t.Fatalf("%d ReplicaSets, want 2", len(w.sets))
	}
}

// While old pods end, Recreate keeps their ReplicaSets, whatever the history's limit: without them the pods would not be
// found, and the new ones would start beside them.
func TestRecreateKeepsWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct {
		name    string
		oldPods int
		want    string
	}{
		{"old pods end", 1, "create false, remove 0"},
		{"all have ended", 0, "create true, remove 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{d: newDeployment(1, 0, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
			w.d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			w.d.Spec.RevisionHistoryLimit = new(int32(0))
			w.step()
			w.live(false)
			w.d.Spec.Replicas = new(int32(0))
			w.d.Spec.Template.Spec.Containers[0].Image = "v2"
			w.step() // scales
			w.live(false)
			todo := plan(w.d, observed{sets: w.sets, oldPods: c.oldPods}, w.now)
			if got := fmt.Sprintf("create %v, remove %d", todo.create != nil, len(todo.remove)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A paused Deployment still hands changed minReadySeconds to its current ReplicaSet, as upstream does.
func TestPausedPassesMinReadySecondsOn(t *testing.T) {
	w := &world{d: newDeployment(2, 1, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
	w.step()
	w.d.Spec.Paused, w.d.Spec.MinReadySeconds = true, 7
	w.step()
	if got := w.sets[0].Spec.MinReadySeconds; got != 7 {
		t.Errorf("minReadySeconds %d, want 7", got)
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

// While another ReplicaSet may have more pods than it asks for, none grows and a new one begins without pods: together they
// would be more than replicas + surge.
func TestGrowthWaitsForTheOthers(t *testing.T) {
	for _, c := range []struct {
		name             string
		observed         int64
		replicas, asks   int32
		current, created int32
	}{
		{"settled", 2, 3, 3, 2, 2},
		{"it has more pods than it asks for", 2, 4, 3, 1, 0},
		{"it has not seen its last change", 1, 3, 3, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(4, 1, 1)
			w := &world{d: d, random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
			w.step()
			old := w.sets[0]
			old.Generation, old.Spec.Replicas = 2, &c.asks
			old.Status = appsv1.ReplicaSetStatus{ObservedGeneration: c.observed, Replicas: c.replicas}
			d.Spec.Template.Spec.Containers[0].Image = "v2"
			w.step()
			current := w.sets[1]
			if n := *current.Spec.Replicas; n != c.created {
				t.Errorf("the new one begins with %d pods, want %d", n, c.created)
			}
			*current.Spec.Replicas = 1
			w.step()
			if n := *current.Spec.Replicas; n != c.current {
				t.Errorf("it grows from 1 to %d, want %d", n, c.current)
			}
		})
	}
}

// The first status that a pass writes shows the pods that the pass asks for as unavailable, so that nobody who counts replicas
// takes a rollout that has just begun for one that has ended.
func TestStatusShowsWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"a new template", func(w *world) { w.d.Spec.Template.Spec.Containers[0].Image = "v3" }, "available 3, updated 0, unavailable 1"},
		{"an earlier template", func(w *world) { w.d.Spec.Template.Spec.Containers[0].Image = "v1" }, "available 3, updated 0, unavailable 1"},
		{"more replicas", func(w *world) { w.d.Spec.Replicas = new(int32(5)) }, "available 3, updated 3, unavailable 2"},
		{"old pods that stop", func(w *world) { // the new ones are asked for and are not there
			w.sets[0].Spec.Replicas = new(int32(3))
			w.sets[0].Status = appsv1.ReplicaSetStatus{Replicas: 3, AvailableReplicas: 3}
			w.sets[1].Status = appsv1.ReplicaSetStatus{}
			w.d.Spec.Strategy = newDeployment(0, 0, 3).Spec.Strategy
		}, "available 3, updated 0, unavailable 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{d: newDeployment(3, 1, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
			w.settle()
			w.d.Spec.Template.Spec.Containers[0].Image = "v2"
			w.settle()
			c.change(w)
			w.step()
			s := w.d.Status
			if got := fmt.Sprintf("available %d, updated %d, unavailable %d", s.AvailableReplicas, s.UpdatedReplicas, s.UnavailableReplicas); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// While the current ReplicaSet waits until another has no more pods than it asks for, nothing else shrinks.
func TestNothingShrinksWhileGrowthWaits(t *testing.T) {
	w := &world{d: newDeployment(4, 1, 2), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
	w.settle()
	w.d.Spec.Template.Spec.Containers[0].Image = "v2"
	w.step()
	old, current := w.sets[0], w.sets[1]
	old.Spec.Replicas, current.Spec.Replicas = new(int32(3)), new(int32(1))
	old.Status.AvailableReplicas, old.Status.Replicas = 3, 4
	current.Status = appsv1.ReplicaSetStatus{Replicas: 1, AvailableReplicas: 1}
	if w.step(); *old.Spec.Replicas != 3 || *current.Spec.Replicas != 1 {
		t.Errorf("%d old and %d new pods are asked for, want 3 and 1", *old.Spec.Replicas, *current.Spec.Replicas)
	}
}

// A ReplicaSet that ends the rollout as soon as it is made, because no pods are asked for, is named as the one that did.
func TestRolloutOfNoPodsNamesItsReplicaSet(t *testing.T) {
	w := &world{d: newDeployment(0, 1, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
	w.settle()
	w.d.Spec.Template.Spec.Containers[0].Image = "v2"
	w.step()
	c := progress.Find(w.d.Status.Conditions, appsv1.DeploymentProgressing)
	if want := fmt.Sprintf("ReplicaSet %q has successfully progressed.", w.sets[1].Name); c.Reason != reasonAvailable || c.Message != want {
		t.Errorf("%s %q, want %q", c.Reason, c.Message, want)
	}
}

// Another number of replicas and an earlier template in one apply, after a rollout that has timed out: the verdict on that one is not told
// of the new one, whose pods are there. Another number alone changes no verdict.
func TestRollbackThatScalesDropsTheLastVerdict(t *testing.T) {
	for name, c := range map[string]struct{ image, want string }{
		"an earlier template": {"v1", "True " + reasonUpdated},
		"the same template":   {"v2", "False " + reasonTimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{d: newDeployment(6, 2, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
			w.d.Spec.ProgressDeadlineSeconds = new(int32(60))
			w.d.Spec.Template.Spec.Containers[0].Image = "v1"
			w.settle()
			w.d.Spec.Template.Spec.Containers[0].Image = "v2"
			w.step()
			w.sets[1].Status = appsv1.ReplicaSetStatus{Replicas: 2} // none gets available
			w.step()
			w.now = w.now.Add(2 * time.Minute)
			w.step()
			w.d.Spec.Replicas, w.d.Spec.Template.Spec.Containers[0].Image = new(int32(5)), c.image
			w.step()
			is := progress.Find(w.d.Status.Conditions, appsv1.DeploymentProgressing)
			if got := fmt.Sprintf("%s %s", is.Status, is.Reason); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A ReplicaSet beyond the history is removed, and not resized in the same pass: its pods would be asked for, and missing.
func TestRemovedReplicaSetsAreNotResized(t *testing.T) {
	w := &world{d: newDeployment(1, 1, 0), random: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
	w.settle()
	w.d.Spec.Template.Spec.Containers[0].Image = "v2"
	w.d.Spec.Paused, w.d.Spec.RevisionHistoryLimit = true, new(int32(0))
	w.sets[0].Spec.Replicas, w.sets[0].Status = new(int32(0)), appsv1.ReplicaSetStatus{ObservedGeneration: w.sets[0].Generation}
	planned := plan(w.d, observed{sets: w.sets}, w.now)
	if len(planned.change) != 0 || len(planned.remove) != 1 || planned.status.UnavailableReplicas != 0 {
		t.Errorf("%d changed, %d removed, %d unavailable", len(planned.change), len(planned.remove), planned.status.UnavailableReplicas)
	}
}

// settle lets the rollout end.
func (w *world) settle() {
	for range 40 {
		w.step()
		w.live(false)
	}
}
