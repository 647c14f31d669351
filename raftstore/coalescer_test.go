package raftstore

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCoalescerAnswersOnlyThoseWhoCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := uint64(0)
		c := coalescer{}
		c.fetch = func() (uint64, error) {
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

// TestACrowdMakesTheNextFetchWait: a fetch after one for many callers begins as much later as
// that one took; one after a few begins at once.
func TestACrowdMakesTheNextFetchWait(t *testing.T) {
	const took = time.Millisecond
	for callers, pause := range map[int]time.Duration{1: 0, crowd - 1: 0, crowd: took, 20 * crowd: took} {
		synctest.Test(t, func(t *testing.T) {
			var begun []time.Time
			c := coalescer{fetch: func() (uint64, error) {
				begun = append(begun, time.Now())
				time.Sleep(took)
				return 0, nil
			}}
			ask := func() { _, _ = c.get(t.Context()) }
			var asked sync.WaitGroup
			asked.Go(ask)
			synctest.Wait() // the first fetch is under way
			for range callers {
				asked.Go(ask)
			}
			time.Sleep(took)
			synctest.Wait() // the second is, for all callers
			asked.Go(ask)
			asked.Wait()
			if len(begun) != 3 || begun[1].Sub(begun[0]) != took || begun[2].Sub(begun[1]) != took+pause {
				t.Errorf("%d callers: fetches at %v", callers, begun)
			}
			time.Sleep(took)
			later := time.Now()
			ask()
			if waited := time.Since(later); waited != took {
				t.Errorf("%d callers: a lone one later waited %v", callers, waited)
			}
		})
	}
}
