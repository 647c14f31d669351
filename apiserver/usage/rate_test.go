package usage

import (
	"math"
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	spent := func(seconds int, cpu float64) sample {
		total := uint64(cpu * nanos)
		return sample{at: at(seconds), spent: &total, memory: 7}
	}
	own := func(s sample, nanocores uint64) sample { s.nanocores = &nanocores; return s }
	restarted := spent(15, 12)
	restarted.started = at(10)
	for name, c := range map[string]struct {
		samples []sample
		want    *figure // nil: there is none
		since   int     // the second at which the last one came that counts
	}{
		"one":                      {[]sample{spent(0, 10)}, nil, 0},
		"one with the node's rate": {[]sample{own(spent(0, 10), 5)}, &figure{at(0), agentWindow, 5, 7}, 0},
		"two":                      {[]sample{spent(0, 10), spent(20, 15)}, &figure{at(20), 20 * time.Second, nanos / 4, 7}, 20},
		"the node's before ours":   {[]sample{own(spent(0, 10), 5), own(spent(20, 15), 6)}, &figure{at(20), agentWindow, 6, 7}, 20},
		"idle":                     {[]sample{spent(0, 10), spent(15, 10)}, &figure{at(15), 15 * time.Second, 0, 7}, 15},
		"the same again":           {[]sample{spent(0, 10), spent(15, 25), spent(15, 25)}, &figure{at(15), 15 * time.Second, nanos, 7}, 15},
		"too soon":                 {[]sample{spent(0, 10), spent(15, 25), spent(16, 99)}, &figure{at(15), 15 * time.Second, nanos, 7}, 15},
		"from before":              {[]sample{spent(0, 10), spent(15, 25), spent(12, 99)}, &figure{at(15), 15 * time.Second, nanos, 7}, 15},
		"clock put back":           {[]sample{spent(30, 10), spent(45, 25), spent(15, 30)}, nil, 15},
		"less than before":         {[]sample{spent(0, 10), spent(15, 1)}, nil, 15},
		"less, with the node's":    {[]sample{spent(0, 10), own(spent(15, 1), 9)}, &figure{at(15), agentWindow, 9, 7}, 15},
		"restarted":                {[]sample{spent(0, 10), restarted}, nil, 15},
		"more than any machine":    {[]sample{spent(0, 0), spent(15, 16*coresLimit)}, nil, 15},
		"the node's is too much":   {[]sample{own(spent(0, 1), math.MaxUint64)}, nil, 0},
		"after a pause":            {[]sample{spent(0, 10), spent(15, 25), spent(75, 85)}, &figure{at(75), time.Minute, nanos, 7}, 75},
	} {
		t.Run(name, func(t *testing.T) {
			var last *track
			for _, s := range c.samples {
				next := last.after(s, s.at) // as if no time passed on the way
				last = &next
			}
			switch {
			case (last.figure == nil) != (c.want == nil):
				t.Errorf("%+v, want %+v", last.figure, c.want)
			case c.want != nil && *last.figure != *c.want:
				t.Errorf("%+v, want %+v", *last.figure, *c.want)
			}
			if !last.since.Equal(at(c.since)) {
				t.Errorf("since %s, want %s", last.since, at(c.since))
			}
			if f := last.fresh(last.since.Add(staleAfter)); f != last.figure {
				t.Errorf("too early %v", f)
			}
			if f := last.fresh(last.since.Add(staleAfter + 1)); f != nil {
				t.Errorf("too old, but there is %v", f)
			}
		})
	}
}
