package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
)

// calls records what a Func was called with, and answers from a script.
type calls struct {
	mu     sync.Mutex
	at     []string
	start  time.Time
	answer func(n int) (time.Duration, error)
}

func (c *calls) reconcile(_ context.Context, key Key) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, fmt.Sprintf("%s@%v", key, time.Since(c.start)))
	return c.answer(len(c.at))
}

func (c *calls) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.at...)
}

// run starts a loop over one feed that adds the key "a" and waits.
func run(t *testing.T, c *calls, feeds ...Feed) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c.start = time.Now()
	go func() { done <- Run(ctx, Config{Name: "test", Reconcile: c.reconcile, Feeds: feeds}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

func addA(_ context.Context, add func(Key)) { add(Key{Name: "a"}) }

func TestComesBackWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{answer: func(n int) (time.Duration, error) {
			if n < 3 {
				return time.Minute, nil
			}
			return 0, nil
		}}
		run(t, c, addA)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"a@0s", "a@1m0s", "a@2m0s"}, c.list()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestALoopThatRests takes a fifth of the time, however often things change, and is late by restMax at most.
func TestALoopThatRests(t *testing.T) {
	for name, c := range map[string]struct {
		rests  Rests
		pass   time.Duration
		passes int
	}{
		"short passes": {RestsWhole, time.Second, 20}, "long passes": {RestsWhole, 10 * time.Second, 5},
		"of each key, short passes": {RestsEach, 20 * time.Millisecond, 986}, "of each key, long passes": {RestsEach, 850 * time.Millisecond, 99},
		"one that does not rest": {RestsNever, time.Second, 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 98*time.Second+555*time.Millisecond)
				defer cancel()
				passes := 0
				changes := func(ctx context.Context, add func(Key)) {
					for ctx.Err() == nil {
						add(Key{Name: "everything"})
						time.Sleep(10 * time.Millisecond)
					}
				}
				reconcile := func(context.Context, Key) (time.Duration, error) {
					passes++
					time.Sleep(c.pass)
					return 0, nil
				}
				if err := Run(ctx, Config{Name: "test", Reconcile: reconcile, Feeds: []Feed{changes}, Rests: c.rests}); err != nil {
					t.Error(err)
				}
				if passes != c.passes {
					t.Errorf("%d passes, want %d", passes, c.passes)
				}
			})
		})
	}
}

// TestOtherKeysDoNotRest: while one key changes all the time another is handled at once.
func TestOtherKeysDoNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		var calm []time.Duration
		changes := func(ctx context.Context, add func(Key)) {
			for i := 1; ctx.Err() == nil; i++ {
				add(Key{Name: "busy"})
				if i%700 == 0 {
					add(Key{Name: "calm"})
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		reconcile := func(_ context.Context, key Key) (time.Duration, error) {
			if key.Name == "calm" {
				calm = append(calm, time.Since(began))
			}
			time.Sleep(time.Second)
			return 0, nil
		}
		if err := Run(ctx, Config{Name: "test", Reconcile: reconcile, Feeds: []Feed{changes}, Rests: RestsEach}); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{6990 * time.Millisecond, 13990 * time.Millisecond}; !slices.Equal(calm, want) {
			t.Errorf("passes of the key that was changed twice begin after %v, want %v", calm, want)
		}
	})
}

// TestRestsAreForgotten: what is remembered of keys that rest does not grow with the keys that there were.
func TestRestsAreForgotten(t *testing.T) {
	r, now := newRests[int](RestsEach), time.Now()
	for key := range 10 * sweepMin { // 150 of them rest at a time
		r.begin(key, now, time.Second, nil)
		now = now.Add(time.Millisecond)
	}
	if n := len(r.until); n > sweepMin {
		t.Errorf("%d keys are remembered", n)
	}
}

// TestAKeyThatFailedDoesNotRest: its pauses begin as short as those of any key.
func TestAKeyThatFailedDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		var passes []time.Duration
		reconcile := func(context.Context, Key) (time.Duration, error) {
			passes = append(passes, time.Since(began))
			time.Sleep(10 * time.Millisecond)
			if len(passes) == 1 {
				return 0, errors.New("failed")
			}
			return 0, nil
		}
		if err := Run(ctx, Config{Name: "test", Reconcile: reconcile, Feeds: []Feed{addA}, Rests: RestsEach}); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, 10*time.Millisecond + RetryDelayMin}; !slices.Equal(passes, want) {
			t.Errorf("passes begin after %v, want %v", passes, want)
		}
	})
}

func TestRetriesWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{answer: func(n int) (time.Duration, error) {
			switch {
			case n == 2:
				panic("one bad object")
			case n < 4:
				return 0, errors.New("not yet")
			}
			return 0, nil
		}}
		run(t, c, addA)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"a@0s", "a@5ms", "a@15ms", "a@35ms"}, c.list()); diff != "" {
			t.Error(diff)
		}
	})
}

// Pauses grow to RetryDelayMax; a new generation of the object is tried at once and begins them again, another change
// of it is tried at once and does not.
func TestPausesBeginAgainWithTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{answer: func(int) (time.Duration, error) { return 0, errors.New("not yet") }}
		client := fake.NewSimpleClientset()
		f := informers.NewSharedInformerFactory(client, 0)
		informer := f.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		done := make(chan error, 1)
		c.start = time.Now()
		go func() {
			done <- Run(ctx, Config{Name: "test", Reconcile: c.reconcile, Sources: []Source{Self(Cache[*corev1.Pod]{informer: informer})}})
		}()
		defer func() {
			cancel()
			f.Shutdown()
			<-done
		}()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Generation: 1}}
		if _, err := client.CoreV1().Pods("ns").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		tries := func(within time.Duration) int {
			before := len(c.list())
			time.Sleep(within)
			synctest.Wait()
			return len(c.list()) - before
		}
		tries(24 * time.Hour)
		if n := tries(20 * time.Minute); n != 4 {
			t.Errorf("%d tries in 20 minutes, want one each %v", n, RetryDelayMax)
		}
		update := func() {
			if _, err := client.CoreV1().Pods("ns").Update(ctx, pod.DeepCopy(), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		pod.Labels = map[string]string{"another": "label"}
		update()
		if n := tries(time.Minute); n < 1 || n > 2 { // the change, and maybe the next retry
			t.Errorf("%d tries in the minute after another label, want 1 or 2", n)
		}
		pod.Generation = 2
		update()
		if n := tries(time.Minute); n < 10 {
			t.Errorf("%d tries in the minute after a new generation, want pauses from %v on", n, RetryDelayMin)
		}
	})
}

func TestTerminalErrorsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{answer: func(int) (time.Duration, error) { return 0, Terminal(errors.New("hopeless")) }}
		run(t, c, addA)
		time.Sleep(time.Hour)
		if got := c.list(); len(got) != 1 {
			t.Errorf("called %v, want once", got)
		}
	})
	if Terminal(nil) != nil {
		t.Error("Terminal(nil) is an error")
	}
}

func TestSourcesMapEventsAndLeaveWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewSimpleClientset()
		f := informers.NewSharedInformerFactory(client, 0)
		informer := f.Core().V1().Pods().Informer()
		f.StartWithContext(ctx)
		defer f.Shutdown()
		defer cancel()
		synctest.Wait()

		seen := make(chan Key, 10)
		term, end := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			done <- Run(term, Config{
				Reconcile: func(_ context.Context, key Key) (time.Duration, error) { seen <- key; return 0, nil },
				Sources:   []Source{Owner(Cache[*corev1.Pod]{informer: informer}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"})},
			})
		}()
		synctest.Wait()
		owned := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: new(true)}}}}
		if _, err := client.CoreV1().Pods("ns").Create(ctx, owned, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := <-seen; got != (Key{Namespace: "ns", Name: "rs"}) {
			t.Errorf("got %v", got)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := client.CoreV1().Pods("ns").Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(seen) != 0 {
			t.Error("an event reached a term that had ended")
		}
	})
}

func TestObjectOfUnwrapsTombstones(t *testing.T) {
	pod := &corev1.Pod{}
	if ObjectOf(cache.DeletedFinalStateUnknown{Obj: pod}) != metav1.Object(pod) {
		t.Error("the tombstone was not unwrapped")
	}
	if ObjectOf(nil) != nil || ObjectOf(cache.DeletedFinalStateUnknown{}) != nil {
		t.Error("no object became one")
	}
}

func TestCause(t *testing.T) {
	if _, _, ok := CauseFrom(t.Context()); ok {
		t.Error("a cause out of nothing")
	}
	ctx := WithCause(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7"}})
	if uid, rv, ok := CauseFrom(ctx); !ok || uid != "u" || rv != "7" {
		t.Errorf("got %s@%s %v", uid, rv, ok)
	}
}

// TestAHeldLoopTakesAStepForAPass: a step lasts while its key rests, while nothing waits, and through a burst of keys, none of which
// loses its place.
func TestAHeldLoopTakesAStepForAPass(t *testing.T) {
	for name, rests := range map[string]Rests{"rests": RestsWhole, "does not rest": RestsNever} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := &Env{Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler), Numbers: &numbers.Ledger{}, Pace: &pace.Pace{}}
				add, passes := make(chan string), make(chan string, 20)
				feed := func(ctx context.Context, queue func(Key)) {
					for name := range add {
						queue(Key{Name: name})
					}
				}
				reconcile := func(_ context.Context, key Key) (time.Duration, error) {
					time.Sleep(time.Second)
					passes <- key.Name
					return 0, nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				ended.Go(func() {
					_ = Run(ctx, Config{Name: "test", Reconcile: reconcile, Feeds: []Feed{feed}, Rests: rests, Env: env})
				})
				defer ended.Wait()
				defer cancel()
				defer close(add)
				gate := env.Pace.Gate("test")
				add <- "first"
				<-passes // it rests now, if it does
				gate.Pause()
				if err := gate.Step(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if _, steps := env.Pace.State("test"); steps != 1 {
					t.Errorf("%d steps wait for work", steps)
				}
				keys := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
				if rests == RestsWhole {
					keys = keys[:1] // such loops have one key
				}
				for _, name := range keys {
					add <- name
				}
				time.Sleep(time.Minute)
				for i := range keys {
					if got := <-passes; got != keys[i] || len(passes) > 0 {
						t.Fatalf("a pass of %s instead of %s, and %d more", got, keys[i], len(passes))
					}
					got := env.Numbers.Reports(time.Now())[0]
					if got.Depth != len(keys)-i-1 || got.Adds != uint64(1+len(keys)) {
						t.Errorf("after %s: %+v", keys[i], got)
					}
					if err := gate.Step(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}

// TestAHeldLoop begins a pass for each step, of the key that waits longest, and with what is true then; keys stay in its queue, also
// those that idle workers were waiting for when it was paused.
func TestAHeldLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		env := &Env{Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler), Numbers: &numbers.Ledger{}, Pace: &pace.Pace{}}
		var mu sync.Mutex
		var passes []string
		add := make(chan string)
		feed := func(ctx context.Context, queue func(Key)) {
			for {
				select {
				case name := <-add:
					queue(Key{Name: name})
				case <-ctx.Done():
					return
				}
			}
		}
		reconcile := func(_ context.Context, key Key) (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			passes = append(passes, key.Name)
			return 0, nil
		}
		var ended sync.WaitGroup
		ended.Go(func() { _ = Run(ctx, Config{Name: "test", Reconcile: reconcile, Feeds: []Feed{feed}, Env: env}) })
		synctest.Wait()
		gate := env.Pace.Gate("test")
		gate.Pause()
		for _, name := range []string{"a", "b", "c", "a"} {
			add <- name
			synctest.Wait()
		}
		check := func(when string, depth int, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, passes); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
			if got := env.Numbers.Reports(time.Now())[0]; got.Depth != depth || got.Passes != uint64(len(want)) || got.Idle != got.Passes {
				t.Errorf("%s: %+v", when, got)
			}
		}
		check("paused", 3)
		if !env.Numbers.Busy(func(string) bool { return false }) || env.Numbers.Busy(env.Pace.Held) {
			t.Error("who lets time pass waits for a loop that is held")
		}
		for i, want := range [][]string{{"a"}, {"a", "b"}} {
			if err := gate.Step(); err != nil {
				t.Fatal(err)
			}
			check(fmt.Sprintf("step %d", i+1), 2-i, want...)
		}
		gate.Resume()
		check("resumed", 0, "a", "b", "c")
		gate.Pause()
		cancel()
		ended.Wait() // also while it is held
	})
}
