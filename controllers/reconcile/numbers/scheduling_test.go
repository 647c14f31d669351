package numbers

import (
	"testing"
	"time"
)

func TestSchedulingCountsGoOnInTheNextTerm(t *testing.T) {
	var ledger Ledger
	s := ledger.OfScheduling()
	for range 2 {
		s.Begin(func() map[string]int { return map[string]int{"active": 3} })
		s.Attempted("packer", Scheduled, 3*time.Millisecond)
		s.Attempted("packer", Scheduled, time.Minute)
		s.Preempting()
		if c := s.Counts(); c.Pending["active"] != 3 {
			t.Errorf("%+v, want 3 active", c)
		}
		s.End()
	}
	c := s.Counts()
	a := c.Attempts["packer"][Scheduled]
	if !c.Acted || c.Pending != nil || c.Preemptions != 2 || a.Count != 4 || a.Sum != 2*time.Minute+6*time.Millisecond {
		t.Errorf("%+v", c)
	}
	buckets := a.Buckets()
	if len(buckets) != len(attemptBounds) {
		t.Errorf("%d buckets, want %d", len(buckets), len(attemptBounds))
	}
	for bound, got := range buckets {
		want := uint64(2)
		if bound < 0.003 {
			want = 0
		}
		if got != want {
			t.Errorf("%d up to %v, want %d", got, bound, want)
		}
	}
	var none *Ledger
	none.OfScheduling().Begin(nil)
	none.OfScheduling().Attempted("s", Refused, time.Second)
	none.OfScheduling().Preempting()
	none.OfScheduling().End()
	if c := none.OfScheduling().Counts(); c.Acted {
		t.Errorf("nobody counts: %+v", c)
	}
}
