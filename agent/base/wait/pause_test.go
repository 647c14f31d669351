package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestForEndsInTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, c := range []struct {
			d, took time.Duration
			whole   bool
		}{{time.Second, time.Second, true}, {time.Hour, 59 * time.Second, false}, {time.Second, 0, false}} {
			begun := time.Now()
			if whole, took := For(ctx, c.d), time.Since(begun); whole != c.whole || took != c.took {
				t.Errorf("For(%v) = %v after %v, want %v after %v", c.d, whole, took, c.whole, c.took)
			}
		}
	})
}
