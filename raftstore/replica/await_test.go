package replica

import (
	"context"
	"testing"
)

// TestNobodyWaitsForever: raft keeps calls in a buffer that it leaves unread when it shuts down.
func TestNobodyWaitsForever(t *testing.T) {
	r, err := openLone(t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for range 64 { // each goes into the buffer or is refused, by chance
		if r.answer(r.raft.VerifyLeader()) == nil {
			t.Fatal("it leads though it has shut down")
		}
	}
}

// TestTurned: the main loop of a replica that leads turns, and who gives it no time learns nothing of it.
func TestTurned(t *testing.T) {
	r, err := openLone(t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	if err := r.Turned(t.Context()); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Turned(ended); err == nil {
		t.Error("it has turned though nobody waited")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
