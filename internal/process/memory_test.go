package process

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestMemoryLimit(t *testing.T) {
	const set = "GOMEMLIMIT"
	for name, c := range map[string]struct {
		group       memlimit.Provider
		environment string
		want        int64
	}{
		"of the group":        {group: memlimit.Limit(1000 << 20), want: 850 << 20},
		"the environment's":   {group: memlimit.Limit(1000 << 20), environment: "1TiB", want: math.MaxInt64},
		"a group without one": {group: func() (uint64, error) { return 0, memlimit.ErrNoLimit }, want: math.MaxInt64},
		"no group is known":   {group: func() (uint64, error) { return 0, errors.New("unreadable") }, want: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			t.Cleanup(func() { debug.SetMemoryLimit(before) })
			t.Setenv(set, c.environment) // restored at the end
			if c.environment == "" {
				_ = os.Unsetenv(set)
			}
			limitMemory(slog.New(slog.DiscardHandler), c.group)
			if got := debug.SetMemoryLimit(-1); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
