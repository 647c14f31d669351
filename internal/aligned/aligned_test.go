package aligned

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntil(t *testing.T) {
	for name, c := range map[string]struct {
		now      time.Time
		interval time.Duration
		want     time.Duration
	}{
		"in the middle":        {time.Unix(10, 250e6), time.Second, 750 * time.Millisecond},
		"at a multiple":        {time.Unix(10, 0), time.Second, time.Second},
		"just before one":      {time.Unix(11, -1), time.Second, time.Nanosecond},
		"just after one":       {time.Unix(10, 1), time.Second, time.Second - 1},
		"a longer interval":    {time.Unix(10, 0), 3 * time.Second, 2 * time.Second},
		"a clock before 1970":  {time.Unix(-1, 250e6), time.Second, 750 * time.Millisecond},
		"a multiple before it": {time.Unix(-2, 0), time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Until(c.now, c.interval); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestLoopsWakeTogether: loops that began at different moments wake at the same ones.
func TestLoopsWakeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const loops, seconds = 9, 10
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second+time.Millisecond)
		defer cancel()
		var mu sync.Mutex
		moments := map[time.Duration]int{}
		var running sync.WaitGroup
		for i := range loops {
			running.Go(func() {
				time.Sleep(time.Duration(i) * 77 * time.Millisecond)
				for Sleep(ctx, time.Second) {
					mu.Lock()
					moments[time.Since(start)]++
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if len(moments) != seconds {
			t.Errorf("woke at %d moments in %d seconds: %v", len(moments), seconds, moments)
		}
		for at, n := range moments {
			if n != loops {
				t.Errorf("at %v %d of %d loops woke", at, n, loops)
			}
		}
	})
}
