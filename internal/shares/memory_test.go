package shares

import (
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestOfMemory: a small machine, or a small control group, has fewer places.
func TestOfMemory(t *testing.T) {
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for name, c := range map[string]struct {
		group, machine memlimit.Provider
		want           int
	}{
		"large":         {none, memlimit.Limit(64 << 30), 1024},
		"small":         {none, memlimit.Limit(1 << 30), 512},
		"a small group": {memlimit.Limit(256 << 20), memlimit.Limit(64 << 30), 128},
		"tiny":          {memlimit.Limit(1 << 20), none, 2},
		"unknown":       {none, none, 1024},
	} {
		if got := ofMemory(1024, 1<<20, 2, c.group, c.machine); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := OfMemory(1, 1, 1); got != 1 {
		t.Errorf("here: %d", got)
	}
}
