package raftstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newKeeper returns a keeper whose sessions are 1, 2, and so on.
func newKeeper() (*sessionKeeper, *atomic.Uint64) {
	var opened atomic.Uint64
	return &sessionKeeper{open: func(context.Context) (uint64, error) { return opened.Add(1), nil }}, &opened
}

func TestSessionGivesEachSequenceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, opened := newKeeper()
		var mu sync.Mutex
		seen := map[uint64]bool{}
		var takers sync.WaitGroup
		for range 100 {
			takers.Go(func() {
				ticket, err := k.take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer ticket.finish()
				mu.Lock()
				defer mu.Unlock()
				if seen[ticket.sequence] {
					t.Errorf("sequence %d given twice", ticket.sequence)
				}
				seen[ticket.sequence] = true
			})
		}
		takers.Wait()
		if len(seen) != 100 || opened.Load() != 1 {
			t.Errorf("%d sequences of %d sessions", len(seen), opened.Load())
		}
		if k.current.oldest != 101 || len(k.current.finished) != 0 {
			t.Errorf("oldest %d, %d kept", k.current.oldest, len(k.current.finished))
		}
	})
}

func TestSessionWaitsForTheOldestSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newKeeper()
		oldest, err := k.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range sequenceSpread - 1 {
			ticket, err := k.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ticket.finish()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.take(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("sequence beyond the spread: %v", err)
		}
		got := make(chan uint64)
		go func() {
			ticket, _ := k.take(t.Context())
			got <- ticket.sequence
		}()
		synctest.Wait()
		oldest.finish()
		if sequence := <-got; sequence != sequenceSpread+1 {
			t.Errorf("sequence %d after the wait", sequence)
		}
	})
}

func TestDroppedSessionIsReplaced(t *testing.T) {
	k, opened := newKeeper()
	first, err := k.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.drop(first.session)
	second, err := k.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.drop(first.session) // too late to hit the second
	third, err := k.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first.finish()
	if second.session.id != 2 || second.sequence != 1 || third.session != second.session || opened.Load() != 2 {
		t.Errorf("second %+v third %+v", second, third)
	}
}

func TestFailedOpenIsTriedAgain(t *testing.T) {
	fail := errors.New("no leader")
	calls := 0
	k := &sessionKeeper{open: func(context.Context) (uint64, error) {
		if calls++; calls == 1 {
			return 0, fail
		}
		return 9, nil
	}}
	if _, err := k.take(t.Context()); !errors.Is(err, fail) {
		t.Errorf("first: %v", err)
	}
	if ticket, err := k.take(t.Context()); err != nil || ticket.session.id != 9 {
		t.Errorf("second: %v %v", ticket, err)
	}
}
