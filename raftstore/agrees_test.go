package raftstore

import "testing"

// TestAgreesTo: a hold counts for a cluster that has begun, whatever the state of the server that holds, and never lets it rise further.
func TestAgreesTo(t *testing.T) {
	for _, c := range []struct {
		highest, held uint64
		begun         bool
		want          uint64
	}{
		{3, 0, true, 3}, {3, 2, true, 2}, {3, 2, false, 3}, {2, 3, true, 2}, {3, 1, true, 1}, {0, 0, true, 0},
	} {
		if got := agreesTo(c.highest, c.held, c.begun); got != c.want {
			t.Errorf("highest %d, held %d, begun %v: %d, not %d", c.highest, c.held, c.begun, got, c.want)
		}
	}
}
