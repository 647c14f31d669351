package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestReadersBesideApply reads in every way while entries are applied. Each entry
// puts the same value under two keys, so a torn view shows.
func TestReadersBesideApply(t *testing.T) {
	const entries = 500
	l := newLog(state.Options{RingBytes: 60_000})
	reached := func() bool { return l.Root().Revision >= 2*entries }
	var wg sync.WaitGroup
	for _, read := range []func() error{
		func() error { return twins(l.Root()) },
		func() error { return readPast(l) },
		func() error { return checkEvents(t, l) },
	} {
		for range 2 {
			wg.Go(func() {
				for !reached() {
					if err := read(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	for i := range entries {
		l.op(put("x/1", fmt.Sprint(i)), put("x/2", fmt.Sprint(i)))
		if i%50 == 0 {
			snapshot := l.Snapshot()
			wg.Go(func() {
				var b bytes.Buffer
				if _, err := snapshot.WriteTo(&b); err != nil {
					t.Error(err)
				}
				if root, err := state.Verify(&b); err != nil || twins(root) != nil {
					t.Errorf("snapshot beside apply: %v", err)
				}
			})
		}
	}
	wg.Wait()
}

func twins(root *state.Root) error {
	a, _ := root.Get("x/1")
	b, _ := root.Get("x/2")
	if a == nil && b == nil || a != nil && b != nil && bytes.Equal(a.Value, b.Value) {
		return nil
	}
	return fmt.Errorf("torn root at %d", root.Revision)
}

// readPast rebuilds the root of some entries ago; an entry ends at an even
// revision.
func readPast(l *log) error {
	revision := l.Root().Revision
	past, err := l.RootAt(revision - min(revision, 20))
	if errors.Is(err, state.ErrCompacted) {
		return nil
	}
	if err != nil {
		return err
	}
	return twins(past)
}

// checkEvents expects that a reader that sees an event finds its object in the root.
func checkEvents(t *testing.T, l *log) error {
	compacted, last := l.Ring().Bounds()
	if last == compacted {
		return nil
	}
	w, err := l.Ring().Watch("x/", last-1)
	if err != nil {
		return nil // overtaken already
	}
	defer w.Close()
	events, err := w.Next(t.Context())
	if err != nil {
		return nil
	}
	newest := events[len(events)-1]
	if rec, ok := l.Root().Get(newest.Key); !ok || rec.ModRevision < newest.Revision {
		return fmt.Errorf("event %d is ahead of the root", newest.Revision)
	}
	return nil
}
