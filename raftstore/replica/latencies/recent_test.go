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

// TestTheSlowestIsOfTheLastEight, whether all places are taken or not.
func TestTheSlowestIsOfTheLastEight(t *testing.T) {
	for _, before := range []int{0, 5, kept - 4, 3*kept + 5} {
		var d Recent
		for range before {
			d.Record(time.Millisecond)
		}
		d.Record(time.Second)
		for range 7 {
			d.Record(time.Millisecond)
		}
		if got := d.Slowest(); got != time.Second {
			t.Errorf("after %d: the slowest of the last eight took %v", before, got)
		}
		if d.Record(time.Millisecond); d.Slowest() != time.Millisecond {
			t.Errorf("after %d: one before the last eight counts: %v", before, d.Slowest())
		}
	}
}

func TestOnlySoManyAreKept(t *testing.T) {
	var d Recent
	d.Record(time.Second)
	for range kept {
		d.Record(time.Millisecond)
	}
	if got := d.Longest(); got != time.Millisecond {
		t.Errorf("the longest took %v", got)
	}
}

// TestTheOldestIsWaitedFor, and the next one when it has ended.
func TestTheOldestIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Recent
		first := d.Begin()
		time.Sleep(time.Second)
		second := d.Begin()
		time.Sleep(time.Second)
		if got := d.Waiting(); got != 2*time.Second {
			t.Errorf("the oldest runs for %v", got)
		}
		if first(); d.Waiting() != time.Second {
			t.Errorf("the other one runs for %v", d.Waiting())
		}
		if second(); d.Waiting() != 0 || d.Longest() != 2*time.Second {
			t.Errorf("one runs for %v, the longest took %v", d.Waiting(), d.Longest())
		}
	})
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
