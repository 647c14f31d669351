package contact

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhenAServerIsWithoutALeader(t *testing.T) {
	for name, c := range map[string]struct {
		known  bool
		silent time.Duration
		lost   bool
	}{
		"no leader known, a moment ago": {false, LostAfter - time.Millisecond, false},
		"no leader known, too long ago": {false, LostAfter, true},
		"a leader that is only slow":    {true, UnansweredAfter - time.Millisecond, false},
		"a leader that never answers":   {true, UnansweredAfter, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				contact := New()
				led := contact.Led()
				time.Sleep(c.silent)
				if got := contact.Judge(c.known); got != c.lost || contact.Lost() != c.lost || errors.Is(context.Cause(led), ErrNoLeader) != c.lost {
					t.Errorf("lost: %v, %v, %v", got, contact.Lost(), context.Cause(led))
				}
				if contact.Judge(c.known) {
					t.Error("it is lost a second time")
				}
				contact.Prove()
				if contact.Lost() || contact.Led().Err() != nil || contact.Judge(c.known) {
					t.Error("a proof does not end it")
				}
			})
		})
	}
}
