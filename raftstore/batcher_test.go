package raftstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

// inBatcher runs a test with a batcher that ships by ship.
func inBatcher(t *testing.T, ship func(context.Context, []command.Command) []forward.Outcome, test func(*testing.T, *batcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		b := newBatcher(ctx, ship)
		var running sync.WaitGroup
		running.Go(b.run)
		test(t, b)
		b.drain()
		cancel()
		running.Wait()
	})
}

func command1(bytesLong int) command.Command {
	return command.Command{Ops: []command.Op{{Kind: command.Put, Key: "/k", Value: bytes.Repeat([]byte{1}, bytesLong)}}}
}

func TestBatcherPacksWhatWaits(t *testing.T) {
	var mu sync.Mutex
	var sizes []int
	slow := func(_ context.Context, c []command.Command) []forward.Outcome {
		mu.Lock()
		sizes = append(sizes, len(c))
		mu.Unlock()
		time.Sleep(time.Millisecond)
		return make([]forward.Outcome, len(c))
	}
	inBatcher(t, slow, func(t *testing.T, b *batcher) {
		const n = 3 * command.MaxCommands
		var submitting sync.WaitGroup
		for range n {
			submitting.Go(func() {
				if _, err := b.submit(t.Context(), command1(1)); err != nil {
					t.Error(err)
				}
			})
		}
		submitting.Wait()
		total := 0
		for _, size := range sizes {
			total += size
			if size > command.MaxCommands {
				t.Errorf("batch of %d", size)
			}
		}
		if total != n || len(sizes) > 20 {
			t.Errorf("%d commands in %d batches", total, len(sizes))
		}
	})
}

func TestBatcherBoundsBytes(t *testing.T) {
	release := make(chan struct{})
	var mu sync.Mutex
	largest := 0
	ship := func(_ context.Context, c []command.Command) []forward.Outcome {
		<-release
		size := 0
		for i := range c {
			size += c[i].Size()
		}
		mu.Lock()
		defer mu.Unlock()
		if len(c) > 1 {
			largest = max(largest, size)
		}
		return make([]forward.Outcome, len(c))
	}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		b := newBatcher(ctx, ship)
		go b.run()
		var submitting sync.WaitGroup
		for range 40 {
			submitting.Go(func() { b.submit(t.Context(), command1(50_000)) })
		}
		submitting.Go(func() { b.submit(t.Context(), command1(command.MaxBytes+1)) })
		synctest.Wait()
		close(release)
		submitting.Wait()
	})
	if largest > command.MaxBytes {
		t.Errorf("a batch of several had %d bytes", largest)
	}
}

func TestBatcherRefusesBeyondItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		// Nothing runs: the queue fills.
		b := newBatcher(ctx, nil)
		for range queueLimit {
			if _, err := b.enqueue(ctx, command1(1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.enqueue(ctx, command1(1)); !errors.Is(err, ErrOverloaded) || !errors.Is(err, forward.ErrNotProposed) {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}

func TestBatcherSkipsCommandsWhoseCallerLeft(t *testing.T) {
	var shipped atomic.Int64
	ship := func(_ context.Context, c []command.Command) []forward.Outcome {
		time.Sleep(time.Second)
		shipped.Add(int64(len(c)))
		return make([]forward.Outcome, len(c))
	}
	inBatcher(t, ship, func(t *testing.T, b *batcher) {
		go b.submit(t.Context(), command1(1))
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := b.submit(short, command1(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("submit: %v", err)
		}
		b.drain()
		if shipped.Load() != 1 {
			t.Errorf("%d shipped", shipped.Load())
		}
	})
}

func TestBatcherShipsBesideOnlyWhatIsMany(t *testing.T) {
	var shipped []int
	var mu sync.Mutex
	var release chan struct{}
	ship := func(_ context.Context, c []command.Command) []forward.Outcome {
		mu.Lock()
		shipped = append(shipped, len(c))
		mu.Unlock()
		<-release
		return make([]forward.Outcome, len(c))
	}
	inBatcher(t, ship, func(t *testing.T, b *batcher) {
		release = make(chan struct{}) // made in the bubble, or waiting for it does not count
		submit := func(n int) []int {
			for range n {
				go b.submit(t.Context(), command1(1))
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(shipped)
		}
		// The first goes at once. The next waits for its end, until many do; one of
		// them is in the hands of run, not in the queue.
		for i, step := range []struct {
			commands int
			want     []int
		}{
			{1, []int{1}},
			{eagerCommands, []int{1}},
			{1, []int{1, eagerCommands + 1}},
		} {
			if got := submit(step.commands); !slices.Equal(got, step.want) {
				t.Errorf("step %d: batches of %v, want %v", i, got, step.want)
			}
		}
		for range 2 * batchesInFlight {
			submit(eagerCommands + 1)
		}
		if got := submit(0); len(got) != batchesInFlight {
			t.Errorf("batches of %v, want %d under way", got, batchesInFlight)
		}
		close(release)
	})
}

func TestBatcherRefusesAfterDrain(t *testing.T) {
	ship := func(_ context.Context, c []command.Command) []forward.Outcome { return make([]forward.Outcome, len(c)) }
	inBatcher(t, ship, func(t *testing.T, b *batcher) {
		b.drain()
		if _, err := b.submit(t.Context(), command1(1)); !errors.Is(err, ErrStopped) || !errors.Is(err, forward.ErrNotProposed) {
			t.Errorf("after drain: %v", err)
		}
	})
}
