package clusterclock

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Wait lets d pass by a clock and returns true, or returns false as soon as ctx ends.
func Wait(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
