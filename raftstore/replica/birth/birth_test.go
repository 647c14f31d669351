package birth

import (
	"testing"
	"time"
)

func TestWhereALifeBegins(t *testing.T) {
	now := time.UnixMicro(1_800_000_000_000_000)
	for name, c := range map[string]struct {
		last   uint64
		begins time.Time
		want   uint64
	}{
		"the time":                  {5000, now, 1_800_000_000_000_000},
		"a clock that went back":    {1_800_000_000_000_001, now, 1_800_000_000_000_001 + RevisionGap},
		"a clock before 1970":       {7, time.UnixMicro(-1), 7 + RevisionGap},
		"a clock in the far future": {7, time.UnixMicro(1<<53 + 1), 7 + RevisionGap},
	} {
		if got := Revision(c.last, c.begins); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := Term(3, now); got != 1_800_000_000_000 {
		t.Errorf("term %d", got)
	}
	if got := Index(3, now); got != 1_800_000_000_000_000 {
		t.Errorf("index %d", got)
	}
	if a, b := Name(), Name(); a == b || len(a) != 16 {
		t.Errorf("names %s and %s", a, b)
	}
}
