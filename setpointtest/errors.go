package setpointtest

import (
	"context"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Upstream's last handler of errors that nobody returns sleeps between two of them, by the time of the last one, which it keeps for the
// process: the first error of a bubble, whose clock begins in the year 2000, would sleep until today. It is replaced while the program is
// initialized, since nobody reads the handlers yet: a test could only do so while others report errors.
var _ = passOverBubbles(time.Now())

// passOverBubbles leaves to bubbles the handler that logs, which is the first. Their clocks are before begun, the start of the process;
// outside of them the handlers do what they did.
func passOverBubbles(begun time.Time) struct{} {
	for i := 1; i < len(utilruntime.ErrorHandlers); i++ {
		handle := utilruntime.ErrorHandlers[i]
		utilruntime.ErrorHandlers[i] = func(ctx context.Context, err error, message string, more ...any) {
			if !time.Now().Before(begun) {
				handle(ctx, err, message, more...)
			}
		}
	}
	return struct{}{}
}
