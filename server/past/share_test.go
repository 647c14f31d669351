package past

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/raftstore/history"
)

// TestShares: one tenant with as many reads as it gets leaves a turn to the next at once; what it asks beyond its share is refused with
// the reason, and so it is to the API.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Share(nil)
		greedy, modest := request.WithUser(t.Context(), &user.DefaultInfo{Name: "greedy"}), request.WithUser(t.Context(), &user.DefaultInfo{Name: "modest"})
		release := make(chan struct{})
		for range askedMax / 2 {
			go func() {
				if done, err := s.take(greedy); err == nil {
					<-release
					done()
				}
			}()
		}
		synctest.Wait()
		if _, err := s.take(greedy); !errors.Is(err, history.ErrBusy) {
			t.Errorf("beyond its share: %v", err)
		}
		ctx, cancel := context.WithTimeout(modest, time.Minute)
		defer cancel()
		begun := time.Now()
		done, err := s.take(ctx)
		if err != nil || time.Since(begun) > 0 {
			t.Fatalf("the modest one waited %s: %v", time.Since(begun), err)
		}
		done()
		close(release)
		synctest.Wait()
		if done, err := s.take(greedy); err != nil {
			t.Error(err)
		} else {
			done()
		}
	})
}
