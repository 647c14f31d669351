package transport

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestARemovedMemberIsNotWaitedFor: it will show no sign of life to this leader.
func TestARemovedMemberIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var removed atomic.Bool
		transport := heard()
		transport.leads = func(uint64) bool { return true }
		transport.isMember = func(string) bool { return !removed.Load() }
		transport.leaving = make(chan struct{})
		ended := make(chan bool, 1)
		go func() { ended <- transport.awaitPeer(peerID, 3) }()
		time.Sleep(time.Minute)
		select {
		case <-ended:
			t.Fatal("a member that is away was given up")
		default:
		}
		removed.Store(true)
		time.Sleep(2 * absenceCheck)
		select {
		case there := <-ended:
			if there {
				t.Error("a removed member is said to be there")
			}
		default:
			t.Error("a removed member is still waited for")
			transport.Leave()
		}
	})
}
