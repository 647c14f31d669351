package state_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestAdoptEqualsRestore: a state that adopts a snapshot is as one that read its bytes, and what either of them
// applies later is not seen by the other.
func TestAdoptEqualsRestore(t *testing.T) {
	for seed := range uint64(10) {
		live, r := randomLog(seed, int(seed*30))
		snapshot := live.Snapshot()
		before := snapshotOf(t, live.State)
		forks := [2]*log{}
		for i := range forks {
			forks[i] = &log{State: state.New(state.Options{}), index: live.index, term: live.term}
			forks[i].Adopt(snapshot)
			wantSame(t, live.State, forks[i].State)
			wantSameHistory(t, live.State, forks[i].State)
		}
		for range 100 {
			live.apply(randomCommand(r, live.Root().Revision))
			forks[0].apply(randomCommand(r, forks[0].Root().Revision))
		}
		if !bytes.Equal(before, snapshotOf(t, forks[1].State)) {
			t.Fatalf("seed %d: what others applied got into a fork", seed)
		}
		restored := &log{State: restored(t, before), index: forks[1].index, term: forks[1].term}
		for range 100 {
			c := randomCommand(r, forks[1].Root().Revision)
			if diff := cmp.Diff(restored.apply(c), forks[1].apply(c)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
		wantSame(t, restored.State, forks[1].State)
	}
}
