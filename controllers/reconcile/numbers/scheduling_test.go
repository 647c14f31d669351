package numbers

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestSchedulingCountsGoOnInTheNextTerm(t *testing.T) {
	var ledger Ledger
	s := ledger.OfScheduling()
	for range 2 {
		s.Begin(func() map[string]int { return map[string]int{"active": 3} })
		s.Preempting()
		if c := s.Counts(); c.Pending["active"] != 3 {
			t.Errorf("%+v, want 3 active", c)
		}
		s.End()
	}
	c := s.Counts()
	if !c.Acted || c.Pending != nil || c.Preemptions != 2 {
		t.Errorf("%+v", c)
	}
	var none *Ledger
	none.OfScheduling().Begin(nil)
	none.OfScheduling().Preempting()
	none.OfScheduling().End()
	if c := none.OfScheduling().Counts(); c.Acted {
		t.Errorf("nobody counts: %+v", c)
	}
}

// TestSeriesGoOnInTheNextTerm, and nobody reads those of nobody.
func TestSeriesGoOnInTheNextTerm(t *testing.T) {
	var ledger, none *Ledger = &Ledger{}, nil
	for range 2 {
		loop := ledger.Begin("c", "q")
		loop.Queued(start)
		loop.Taken(3*time.Millisecond, time.Time{})
		loop.Working(start, named("k"))(at(60))
		loop.End()
		ledger.Series().Attempted("packer", Scheduled, time.Minute)
		none.Series().Attempted("packer", Scheduled, time.Minute)
	}
	for name, h := range map[string]prometheus.Observer{
		"waited": ledger.Series().waited.WithLabelValues("q"), "worked": ledger.Series().worked.WithLabelValues("q"),
		"attempts": ledger.Series().AttemptTime.WithLabelValues("scheduled", "packer"),
	} {
		got := &dto.Metric{}
		if err := h.(prometheus.Metric).Write(got); err != nil || got.Histogram.GetSampleCount() != 2 || got.Histogram.GetSchema() == 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
