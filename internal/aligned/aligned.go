package aligned

import (
	"context"
	"time"
)

// After is time.After until the next whole multiple of the interval, which may come at once after a busy moment: who must not act twice
// within an interval asks how long ago the last time was.
func After(interval time.Duration) <-chan time.Time { return time.After(Until(time.Now(), interval)) }

// Until is how long it is from now to the next whole multiple of the interval since 1970.
func Until(now time.Time, interval time.Duration) time.Duration {
	passed := time.Duration(now.UnixNano()) % interval
	if passed < 0 { // a clock before 1970
		passed += interval
	}
	return interval - passed
}

// Sleep reports whether it slept to the next whole multiple of the interval; it ends early with ctx.
func Sleep(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-After(interval):
		return true
	}
}
