package watch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/watch"
)

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := watch.NewRing(0)
		w := mustWatch(t, ring, "a/", 0)
		var got []uint64
		go func() {
			events, _ := w.Next(t.Context())
			got = revisions(events)
		}()
		synctest.Wait()
		ring.Append([]watch.Event{put(1, "b/1", 0)})
		synctest.Wait()
		if got != nil {
			t.Fatalf("woken for another folder: %v", got)
		}
		ring.Append([]watch.Event{put(2, "a/1", 0), put(3, "a/2", 0)})
		synctest.Wait()
		if len(got) != 2 {
			t.Fatalf("got %v, want the whole entry", got)
		}
	})
}

func TestNextEnds(t *testing.T) {
	cases := []struct {
		name string
		end  func(*watch.Ring, *watch.Watcher)
		want error
	}{
		{"deadline", func(*watch.Ring, *watch.Watcher) { time.Sleep(time.Minute) }, context.DeadlineExceeded},
		{"close", func(_ *watch.Ring, w *watch.Watcher) { w.Close(); w.Close() }, watch.ErrClosed},
		{"history cut off", func(r *watch.Ring, _ *watch.Watcher) { r.Reset(50, nil, 50) }, watch.ErrCompacted},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ring := watch.NewRing(0)
				w := mustWatch(t, ring, "a/", 0)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var err error
				done := make(chan struct{})
				go func() { defer close(done); _, err = w.Next(ctx) }()
				synctest.Wait()
				c.end(ring, w)
				<-done
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestDeadlineLeavesTheWatcherUsable(t *testing.T) {
	ring := watch.NewRing(0)
	w := mustWatch(t, ring, "", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	ring.Append(puts(1, 3, "a"))
	wantNext(t, w, 1, 2, 3)
}

func TestBatchIsBounded(t *testing.T) {
	ring := watch.NewRing(0)
	ring.Append(puts(1, 3*watch.MaxBatch, "a"))
	w := mustWatch(t, ring, "", 0)
	for i := range uint64(3) {
		events, err := w.Next(t.Context())
		if err != nil || len(events) != watch.MaxBatch {
			t.Fatalf("%d events, %v", len(events), err)
		}
		if got, want := w.Progress(), min((i+1)*watch.MaxBatch, 3*watch.MaxBatch); got != want {
			t.Errorf("progress %d, want %d", got, want)
		}
	}
}

func TestClosedWatcherClaimsNothingNew(t *testing.T) {
	ring := watch.NewRing(1000)
	w := mustWatch(t, ring, "a/", 0)
	ring.Append(puts(1, 4, "a/1"))
	w.Close()
	ring.Append(puts(5, 500, "a/1"))
	if got := w.Progress(); got != 0 {
		t.Errorf("progress %d", got)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, watch.ErrClosed) {
		t.Errorf("next: %v", err)
	}
}

// TestManyAtOnce lets watchers of all kinds run beside one appender, for the race
// detector and for lost wake-ups, which would hang it.
func TestManyAtOnce(t *testing.T) {
	const entries, perEntry, watchers = 200, 10, 64
	ring := watch.NewRing(0)
	var wg sync.WaitGroup
	for i := range watchers {
		w := mustWatch(t, ring, fmt.Sprintf("f%d/", i%8), 0)
		wg.Go(func() {
			for w.Progress() < entries*perEntry-7 {
				if _, err := w.Next(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rev := uint64(0)
	for range entries {
		var entry []watch.Event
		for range perEntry {
			rev++
			entry = append(entry, put(rev, fmt.Sprintf("f%d/x", rev%8), 10))
		}
		ring.Append(entry)
	}
	wg.Wait()
}

func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", n), func(b *testing.B) { benchmarkFanOut(b, n, "pods/default/") })
		b.Run(fmt.Sprintf("elsewhere=%d", n), func(b *testing.B) { benchmarkFanOut(b, n, "nodes/") })
	}
}

// benchmarkFanOut appends one event at a time below n waiting watchers. Those of
// another folder must cost nothing.
func benchmarkFanOut(b *testing.B, n int, prefix string) {
	ring := watch.NewRing(0)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	for range n {
		w := mustWatch(b, ring, prefix, 0)
		wg.Go(func() {
			for {
				if _, err := w.Next(ctx); err != nil {
					return
				}
			}
		})
	}
	rev := uint64(0)
	for b.Loop() {
		rev++
		ring.Append([]watch.Event{put(rev, "pods/default/web", 1000)})
	}
	cancel()
	wg.Wait()
}

// TestOneMoreThanABatch is what the next call returns.
func TestOneMoreThanABatch(t *testing.T) {
	ring := watch.NewRing(0)
	w := mustWatch(t, ring, "", 0)
	ring.Append(puts(1, watch.MaxBatch+1, "a"))
	wantNext(t, w, revisions(puts(1, watch.MaxBatch, "a"))...)
	if got := w.Progress(); got != watch.MaxBatch {
		t.Errorf("progress %d with one event left", got)
	}
	wantNext(t, w, watch.MaxBatch+1)
}
