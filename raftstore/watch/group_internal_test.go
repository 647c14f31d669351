package watch

import (
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/record"
)

// TestAGroupGoesWithItsLastWatcher: nothing is kept for folders that nobody watches any more.
func TestAGroupGoesWithItsLastWatcher(t *testing.T) {
	ring := NewRing(0)
	var watchers []*Watcher
	for range 2 {
		w, err := ring.Watch("pods/x/", 0)
		if err != nil {
			t.Fatal(err)
		}
		watchers = append(watchers, w)
	}
	for i, want := range []int{1, 0} {
		if watchers[i].Close(); len(ring.groups) != want {
			t.Errorf("%d groups with %d watchers left, want %d", len(ring.groups), 1-i, want)
		}
	}
}

// TestAGroupForgetsWhatLeftTheRing: it knows the revisions of events that are there, and which was lost last.
func TestAGroupForgetsWhatLeftTheRing(t *testing.T) {
	ring := NewRing(1) // the newest event alone stays
	w, err := ring.Watch("pods/", 0)
	if err != nil {
		t.Fatal(err)
	}
	for revision := range uint64(100) {
		rec := &record.Record{Key: "pods/a", ModRevision: revision + 1}
		ring.Append([]Event{{Type: Put, Revision: revision + 1, Key: rec.Key, Record: rec}})
	}
	if g := w.group; g.revisions.len() != 1 || *g.revisions.at(0) != 100 || g.lost != 99 {
		t.Errorf("%d revisions are known, and %d was lost, want 1 and 99", g.revisions.len(), g.lost)
	}
}
