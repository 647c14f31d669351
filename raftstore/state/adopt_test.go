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

// TestANextLifeIsAdopted as if its bytes were read, and what one state applies to it neither another sees nor the root that it is made of.
func TestANextLifeIsAdopted(t *testing.T) {
	live, r := randomLog(7, 200)
	former, err := state.Verify(bytes.NewReader(snapshotOf(t, live.State)))
	if err != nil {
		t.Fatal(err)
	}
	birth := state.Birth{Index: 1 << 40, Revision: 1 << 41, ClusterID: "c-2", Life: "l-2", FormerLife: "l-1"}
	snapshot, ok := former.Rebirth(birth)
	if !ok {
		t.Fatal("no later revision")
	}
	var text bytes.Buffer
	if _, err := snapshot.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	read := restored(t, text.Bytes())
	forks := [2]*log{}
	for i := range forks {
		forks[i] = &log{State: state.New(state.Options{}), index: birth.Index, term: live.term}
		forks[i].Adopt(snapshot)
		wantSame(t, read, forks[i].State)
		wantSameHistory(t, read, forks[i].State)
	}
	hash := former.Hash()
	for range 100 {
		forks[0].apply(randomCommand(r, forks[0].Root().Revision))
	}
	wantSame(t, read, forks[1].State)
	if again, ok := former.Rebirth(birth); !ok || again.Root().Hash() != hash || forks[0].Root().Hash() == hash {
		t.Errorf("what a state applied is seen in what it was made of, or it applied nothing")
	}
	for at := range former.All("") {
		if other, ok := forks[1].Root().Get(at.Key); !ok || other != at {
			t.Fatalf("%s is another record", at.Key)
		}
	}
}
