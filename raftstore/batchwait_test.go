package raftstore

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

// shipTime is how long a batch is under way in these tests, thinkTime how long a
// writer takes between its commands.
const shipTime, thinkTime = 4 * time.Millisecond, time.Millisecond

// loop has so many writers submit n commands each, one after the other, and returns
// the sizes of the batches and how long it took.
func loop(t *testing.T, writers, n int, think func(writer int) time.Duration) (sizes []int, took time.Duration) {
	t.Helper()
	ship := func(_ context.Context, c []command.Command) []forward.Outcome {
		sizes = append(sizes, len(c))
		time.Sleep(shipTime)
		return make([]forward.Outcome, len(c))
	}
	inBatcher(t, ship, func(t *testing.T, b *batcher) {
		start := time.Now()
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for range n {
					if _, err := b.submit(t.Context(), command1(1)); err != nil {
						t.Error(err)
					}
					time.Sleep(think(w))
				}
			})
		}
		writing.Wait()
		took = time.Since(start)
	})
	return sizes, took
}

func TestWritersShareBatches(t *testing.T) {
	const writers, n = 32, 20
	sizes, took := loop(t, writers, n, func(w int) time.Duration { return thinkTime + time.Duration(w)*thinkTime/writers })
	// Each first batch holds whoever came first; then all come together.
	if len(sizes) > n+3 {
		t.Errorf("%d batches for %d rounds of %d writers: %v", len(sizes), n, writers, sizes)
	}
	if limit := (n + 3) * (shipTime + 2*thinkTime); took > limit {
		t.Errorf("%v for %d rounds, want at most %v", took, n, limit)
	}
}

func TestLoneAndFewWritersDoNotWait(t *testing.T) {
	for writers := 1; writers < batchWaitMin; writers += 3 {
		_, took := loop(t, writers, 10, func(int) time.Duration { return thinkTime })
		// A command waits for the end of the batch before it at most.
		if limit := 10 * (2*shipTime + thinkTime); writers > 1 && took > limit {
			t.Errorf("%d writers took %v, want at most %v", writers, took, limit)
		}
		if writers == 1 && took != 10*(shipTime+thinkTime) {
			t.Errorf("a lone writer took %v", took)
		}
	}
}

// Nobody waits for writers who left for longer than a batch takes, nor for long in all.
func TestCompanyThatLeftIsForgotten(t *testing.T) {
	ship := func(_ context.Context, c []command.Command) []forward.Outcome {
		time.Sleep(shipTime)
		return make([]forward.Outcome, len(c))
	}
	inBatcher(t, ship, func(t *testing.T, b *batcher) {
		var writing sync.WaitGroup
		for range 40 {
			writing.Go(func() { b.submit(t.Context(), command1(1)) })
		}
		writing.Wait()
		var took []time.Duration
		for range 20 {
			start := time.Now()
			b.submit(t.Context(), command1(1))
			took = append(took, time.Since(start))
		}
		if slowest := slices.Max(took); slowest > (1+batchWaitPatience)*shipTime {
			t.Errorf("a lone command took %v", slowest)
		}
		if last := took[len(took)-1]; last != shipTime {
			t.Errorf("the last of 20 took %v: %v", last, took)
		}
	})
}

func TestWaitForCompanyIsBoundedOnASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		var c batchWait
		c.landed(landing{at: now, took: time.Minute, limit: lingerLimit, together: 1000})
		if c.expected(batchWaitMin) != eagerCommands || c.until.Sub(now) != lingerLimit {
			t.Errorf("%d expected for %v", c.expected(batchWaitMin), c.until.Sub(now))
		}
	})
}
