package reconcile

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// waitsOf are how many waits of keys were measured, and how long they were together.
func waitsOf(t *testing.T, of *numbers.Ledger) (n uint64, together time.Duration) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(of.Series())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "workqueue_queue_duration_seconds" {
			h := one(t, family.GetMetric()).GetHistogram()
			return h.GetSampleCount(), time.Duration(h.GetSampleSum() * float64(time.Second)).Round(time.Millisecond)
		}
	}
	return 0, 0
}

func one(t *testing.T, all []*dto.Metric) *dto.Metric {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d queues have waited", len(all))
	}
	return all[0]
}

// TestAKeyThatRestsIsCountedOnce, and its rest is no wait for a worker: both as of a key that upstream's delaying queue holds back. Until
// its rest is over the loop is busy.
func TestAKeyThatRestsIsCountedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		rests   Rests
		workers int
		others  int           // keys that hold a worker for a second each
		waits   time.Duration // of all keys together
	}{
		"a key of its own":                   {RestsEach, 0, 0, 0},
		"the whole loop":                     {RestsWhole, 0, 0, 0},
		"its rest ends before a worker does": {RestsEach, 1, 1, 920 * time.Millisecond}, // 970 ms, and it rests for the first 50
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := &Env{Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler), Numbers: &numbers.Ledger{}}
				ctx, cancel := context.WithCancel(t.Context())
				add := make(chan string)
				feed := func(ctx context.Context, queue func(Key)) {
					for name := range add {
						queue(Key{Name: name})
					}
				}
				reconcile := func(_ context.Context, key Key) (time.Duration, error) {
					time.Sleep(map[string]time.Duration{"a": 20 * time.Millisecond, "other": time.Second}[key.Name])
					return 0, nil
				}
				ended := make(chan error)
				go func() {
					ended <- Run(ctx, Config{
						Name: "test", Reconcile: reconcile, Feeds: []Feed{feed}, Rests: c.rests, Workers: c.workers, Env: env,
					})
				}()
				busy := func() bool {
					synctest.Wait()
					return env.Numbers.Busy(func(string) bool { return false })
				}
				add <- "a"
				time.Sleep(20 * time.Millisecond)
				if busy() {
					t.Error("a key that rests and has not changed is nothing to do")
				}
				for range c.others {
					add <- "other"
				}
				time.Sleep(30 * time.Millisecond)
				for range 3 {
					add <- "a"
				}
				if known := c.rests == RestsEach; busy() != known {
					t.Errorf("busy with a key that comes back when it has rested: %v, want %v", !known, known)
				}
				time.Sleep(2 * time.Second)
				if busy() {
					t.Error("its rest is over, and it is busy")
				}
				n, together := waitsOf(t, env.Numbers)
				got, want := env.Numbers.Counts(time.Now())[0], uint64(2+c.others)
				if got.Adds != want || n != want || got.Depth != 0 || together != c.waits {
					t.Errorf("%d keys were added and %d taken, after %v together, and %d wait; want %d, after %v", got.Adds, n, together, got.Depth, want, c.waits)
				}
				close(add)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
