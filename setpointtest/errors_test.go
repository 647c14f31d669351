package setpointtest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestAnErrorInABubbleTakesNoTime: the bubbles that import this package need not change upstream's handlers themselves.
func TestAnErrorInABubbleTakesNoTime(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			utilruntime.HandleError(errors.New("an error of this test, which nobody returns"))
			if took := time.Since(begun); took > 0 {
				t.Errorf("it took %v", took)
			}
			time.Sleep(24 * time.Hour) // the next bubble begins before this one ends
		})
	}
}
