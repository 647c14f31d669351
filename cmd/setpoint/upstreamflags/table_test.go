package upstreamflags

import "testing"

// TestEachFlagHasOneReason: whichever is asked for, the answer is clear.
func TestEachFlagHasOneReason(t *testing.T) {
	seen := map[string]bool{}
	for _, flag := range All() {
		if seen[flag] {
			t.Errorf("--%s has two reasons", flag)
		}
		seen[flag] = true
		if why, known := Why(flag); !known || why == "" {
			t.Errorf("--%s has no reason", flag)
		}
	}
	if _, known := Why("data-dir"); known {
		t.Error("a flag of ours has a reason")
	}
}
