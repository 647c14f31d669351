package past

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
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
		s := Share(nil, NewTurns())
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

// TestOneTurnForARequest: what a request reads further waits for nobody; its turn is the only one, and comes of the same ones as those of
// GET and LIST.
func TestOneTurnForARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		p, s := New(Source{Turns: turns}), Share(nil, turns)
		var held []func()
		for _, name := range []string{"a", "b"} { // as many as tenants have
			caller := &user.DefaultInfo{Name: name}
			ctx, done, err := p.turn(request.WithUser(t.Context(), caller), caller)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			again()
			held = append(held, done)
		}
		ctx, cancel := context.WithTimeout(request.WithUser(t.Context(), &user.DefaultInfo{Name: "c"}), time.Minute)
		defer cancel()
		if _, err := s.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third one: %v", err)
		}
		for _, done := range held {
			done()
		}
	})
}

// TestPrivilegedAreOne: administrators and the control plane have one turn together, and tenants have theirs beside it.
func TestPrivilegedAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Share(nil, NewTurns())
		as := func(name string, groups ...string) context.Context {
			return request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: groups})
		}
		done, err := s.take(as("anna", user.SystemPrivilegedGroup))
		if err != nil {
			t.Fatal(err)
		}
		var second atomic.Bool
		go func() {
			done, err := s.take(as("bob", user.SystemPrivilegedGroup))
			if err != nil {
				t.Error(err)
				return
			}
			second.Store(true)
			done()
		}()
		synctest.Wait()
		if second.Load() {
			t.Error("two have a turn")
		}
		for range readMax {
			if done, err := s.take(as(rand.Text())); err != nil {
				t.Error(err)
			} else {
				defer done()
			}
		}
		done()
		synctest.Wait()
		if !second.Load() {
			t.Error("the other one gets no turn")
		}
	})
}
