package rotations

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestWaitingLeavesNoTimer: a timer that is left on the clock of a cluster holds up whoever moves that clock.
func TestWaitingLeavesNoTimer(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	r := &Rotations{config: Config{Clock: clk}}
	changed := make(chan struct{})
	close(changed)
	if r.wait(t.Context(), changed, true, time.Hour) {
		t.Error("the time was over")
	}
	if clk.HasWaiters() {
		t.Error("a timer is left though something has changed")
	}
}
