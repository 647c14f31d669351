package sampled

import (
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// TestOneOfEachSource in an interval, and the next one counts those between.
func TestOneOfEachSource(t *testing.T) {
	var s Sampler
	for i, c := range []struct {
		after   time.Duration
		address string
		source  string
		skipped int
		tell    bool
	}{
		{0, "10.0.0.1:4000", "10.0.0.1", 0, true},
		{0, "10.0.0.1:4001", "10.0.0.1", 0, false},
		{time.Second, "10.0.0.2:4000", "10.0.0.2", 0, true},
		{Interval - 1, "[::ffff:10.0.0.1]:4002", "10.0.0.1", 0, false},
		{Interval, "10.0.0.1:4003", "10.0.0.1", 2, true},
		{Interval, "[fd00::1]:1", "fd00::/64", 0, true},
		{Interval, "[fd00::2]:1", "fd00::/64", 0, false},
		{Interval, "[fe80::1%eth0]:1", "fe80::/64", 0, true},
		{2 * Interval, "10.0.0.1", "10.0.0.1", 0, true},
		{2 * Interval, "pipe", others, 0, true},
	} {
		source := Source(c.address)
		skipped, tell := s.Tell(source, noon.Add(c.after))
		if source != c.source || skipped != c.skipped || tell != c.tell {
			t.Errorf("%d: %s %d %v, want %+v", i, source, skipped, tell, c)
		}
	}
}

// TestSourcesAreBounded: those beyond share a place, and the silent make room.
func TestSourcesAreBounded(t *testing.T) {
	var s Sampler
	told := 0
	for i := range 3 * SourcesMax {
		if _, tell := s.Tell(fmt.Sprint("source ", i), noon); tell {
			told++
		}
	}
	if told != SourcesMax+1 || len(s.sources) != SourcesMax+1 {
		t.Errorf("%d were told, %d are kept", told, len(s.sources))
	}
	if _, tell := s.Tell("another", noon.Add(Interval)); !tell || s.sources["another"] == nil || len(s.sources) != 1 {
		t.Errorf("%v, %d are kept", tell, len(s.sources))
	}
}
