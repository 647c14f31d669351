package latencies

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTheLastOnesCount(t *testing.T) {
	for name, c := range map[string]struct {
		from, to     int // milliseconds, one run each
		p99, longest time.Duration
	}{
		"none":           {1, 0, 0, 0},
		"one":            {7, 7, 7 * time.Millisecond, 7 * time.Millisecond},
		"a hundred":      {1, 100, 99 * time.Millisecond, 100 * time.Millisecond},
		"more than kept": {1, kept + 500, (kept + 490) * time.Millisecond, (kept + 500) * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var d Recent
			for i := c.from; i <= c.to; i++ {
				d.Record(time.Duration(i) * time.Millisecond)
			}
			if d.P99() != c.p99 || d.Longest() != c.longest {
				t.Errorf("p99 %v, longest %v", d.P99(), d.Longest())
			}
		})
	}
}

// TestWhatIsUnderWayCounts: of thousands that were quick nobody would see that one hangs now.
func TestWhatIsUnderWayCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Recent
		for range 2 * kept {
			d.Record(time.Millisecond)
		}
		first, second := d.Begin(), d.Begin()
		time.Sleep(3 * time.Second)
		if d.Waiting() != 3*time.Second || d.Slowest() != 3*time.Second || d.P99() != 3*time.Second {
			t.Errorf("while it runs: waiting %v, slowest %v, p99 %v", d.Waiting(), d.Slowest(), d.P99())
		}
		first()
		second()
		if d.Waiting() != 0 || d.Slowest() != 3*time.Second || d.P99() != time.Millisecond {
			t.Errorf("when it is done: waiting %v, slowest %v, p99 %v", d.Waiting(), d.Slowest(), d.P99())
		}
		for range few {
			d.Record(time.Millisecond)
		}
		if d.Slowest() != time.Millisecond {
			t.Errorf("after a few others: slowest %v", d.Slowest())
		}
	})
}
