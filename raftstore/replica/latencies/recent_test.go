package latencies

import (
	"testing"
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
