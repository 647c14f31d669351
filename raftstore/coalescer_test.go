package raftstore

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCoalescerAnswersOnlyThoseWhoCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := uint64(0)
		c := coalescer{}
		c.fetch = func(int) (uint64, error) {
			begun++
			answer := begun
			time.Sleep(time.Second)
			return answer, nil
		}
		answers := make(chan uint64, 200)
		ask := func() { v, _ := c.get(t.Context()); answers <- v }
		go ask()
		time.Sleep(500 * time.Millisecond) // the first fetch is under way
		for range 100 {
			go ask()
		}
		if first := <-answers; first != 1 {
			t.Errorf("first caller got %d", first)
		}
		for range 100 {
			if v := <-answers; v != 2 {
				t.Errorf("a caller during fetch 1 got the answer of fetch %d", v)
			}
		}
		c.drain()
		if _, err := c.get(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("after drain: %v", err)
		}
		if begun != 2 {
			t.Errorf("%d fetches", begun)
		}
	})
}

// TestOneFetchRunsAtATime: two come before it begins, and one while it is under way.
func TestOneFetchRunsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay atomic.Int32
		c := coalescer{fetch: func(int) (uint64, error) {
			defer underWay.Add(-1)
			if n := underWay.Add(1); n > 1 {
				t.Errorf("%d fetches at once", n)
			}
			time.Sleep(fetchTime)
			return 0, nil
		}}
		c.join()
		c.join()
		synctest.Wait()
		late := c.join()
		synctest.Wait()
		<-late.done
		c.drain()
	})
}

// fetchTime is how long a fetch takes in these tests, restTime how long a reader takes
// between its reads.
const fetchTime, restTime = time.Millisecond, time.Millisecond

// readLoop has so many readers read n times each, with rests from rest to twice that, and returns the
// fetches they needed and how long they took.
func readLoop(t *testing.T, readers, n int, rest time.Duration) (fetches int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := coalescer{fetch: func(int) (uint64, error) {
			fetches++
			time.Sleep(fetchTime)
			return 0, nil
		}}
		start := time.Now()
		var reading sync.WaitGroup
		for reader := range readers {
			reading.Go(func() {
				for range n {
					_, _ = c.get(t.Context())
					time.Sleep(rest + rest*time.Duration(reader)/time.Duration(readers))
				}
			})
		}
		reading.Wait()
		took = time.Since(start)
		c.drain()
	})
	return fetches, took
}

func TestReadersShareFetches(t *testing.T) {
	const readers, n = 32, 20
	fetches, took := readLoop(t, readers, n, restTime)
	if fetches > n+3 { // the first fetches are for whoever came first
		t.Errorf("%d fetches for %d rounds of %d readers", fetches, n, readers)
	}
	if limit := (n + 3) * (fetchTime + 2*restTime); took > limit {
		t.Errorf("%v for %d rounds, want at most %v", took, n, limit)
	}
}

// TestReadersShareFetchesOnABusyMachine: readers who need their turn of the processor for long, each between two reads, are few
// together, and share fetches all the same.
func TestReadersShareFetchesOnABusyMachine(t *testing.T) {
	const readers, n, share = 16, 20, 2
	if fetches, _ := readLoop(t, readers, n, 10*restTime); fetches > readers*n/share {
		t.Errorf("%d fetches for %d reads, want at most one for %d", fetches, readers*n, share)
	}
}

func TestFewReadersDoNotWait(t *testing.T) {
	const n = 10
	if _, took := readLoop(t, 1, n, restTime); took != n*(fetchTime+restTime) {
		t.Errorf("a lone reader took %v", took)
	}
	// A reader waits at most for the end of the fetch that it came too late for.
	if _, took := readLoop(t, gatherMin-1, n, restTime); took > n*(2*fetchTime+2*restTime) {
		t.Errorf("a few readers took %v", took)
	}
}

// Nobody waits long for readers who left, nor after a slow fetch.
func TestReadersWhoLeftAreForgotten(t *testing.T) {
	for _, slow := range []time.Duration{fetchTime, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			takes := slow
			c := coalescer{fetch: func(int) (uint64, error) { time.Sleep(takes); return 0, nil }}
			var reading sync.WaitGroup
			for range 80 {
				reading.Go(func() { _, _ = c.get(t.Context()) })
			}
			reading.Wait()
			takes = fetchTime
			var took []time.Duration
			for range 30 {
				start := time.Now()
				_, _ = c.get(t.Context())
				took = append(took, time.Since(start))
			}
			if slowest := slices.Max(took); slowest > fetchTime+gatherLimit {
				t.Errorf("after fetches of %v a lone read took %v", slow, slowest)
			}
			if last := took[len(took)-1]; last != fetchTime {
				t.Errorf("after fetches of %v the last read took %v", slow, last)
			}
			c.drain()
		})
	}
}
