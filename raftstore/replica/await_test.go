package replica

import "testing"

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
