package raftstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/contact"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// noticeMax is more than a server takes to notice that it is without a leader that it no longer knows: the last proof
// may be new, and it looks now and then.
const noticeMax = contact.LostAfter + 2*time.Second

// electionMax is how long no leader can be elected after that, and requests wait all the same.
const electionMax = 2 * time.Second

// A follower that the leader does not reach, though both reach the third server, is without a leader: it says so, and
// refuses within seconds. Before, requests there waited for a minute, and whoever followed changes waited for ever.
func TestOneCutLinkLeavesAServerWithoutALeader(t *testing.T) {
	for name, cut := range map[string]func(c *raftstoretest.Cluster, leader, follower int){
		"both ways":         func(c *raftstoretest.Cluster, l, f int) { c.Cut(l, f); c.Cut(f, l) },
		"to the follower":   func(c *raftstoretest.Cluster, l, f int) { c.Cut(l, f) },
		"to the leader":     func(c *raftstoretest.Cluster, l, f int) { c.Cut(f, l) },
		"from both servers": func(c *raftstoretest.Cluster, _, f int) { c.Isolate(f) },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
				leader := c.Leader()
				cutOff, third := others(leader)[0], others(leader)[1]
				mustPut(t, c.Store(leader), "/k", "v")
				time.Sleep(time.Minute) // a quiet cluster stays led
				synctest.Wait()
				for i := range c.Size() {
					if err := c.Store(i).Leaderless(); err != nil {
						t.Fatalf("server %d: %v", i, err)
					}
				}
				cut(c, leader, cutOff)
				begun := time.Now()
				<-c.Store(cutOff).Led().Done()
				t.Logf("noticed after %v", time.Since(begun))
				if took := time.Since(begun); took > contact.UnansweredAfter+2*time.Second {
					t.Errorf("it took %v", took)
				}
				wantRefused(t, c.Store(cutOff))
				for _, i := range []int{leader, third} {
					mustPut(t, c.Store(i), "/k", "w")
					if err := c.Store(i).Leaderless(); err != nil {
						t.Errorf("server %d: %v", i, err)
					}
				}
				c.Heal()
				if got := mustRead(t, c.Store(cutOff), "/k"); got != "w" {
					t.Errorf("read %q", got)
				}
				if err := c.Store(cutOff).Leaderless(); err != nil {
					t.Errorf("after a read: %v", err)
				}
			})
		})
	}
}

// A leader that is cut off is without a leader too, and so are all servers without a majority.
func TestLeaderCutOffIsWithoutALeader(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		old := c.Leader()
		mustPut(t, c.Store(old), "/k", "v")
		c.Isolate(old)
		time.Sleep(noticeMax)
		synctest.Wait()
		wantRefused(t, c.Store(old))
		next := c.Leader(others(old)...)
		mustPut(t, c.Store(next), "/k", "w")
		c.Isolate(next)
		time.Sleep(noticeMax)
		synctest.Wait()
		for i := range c.Size() {
			wantRefused(t, c.Store(i))
		}
	})
}

// TestWhoComesLaterIsNotRefusedSooner: an election takes longer than a server waits before it counts as without a leader. Requests that come
// then wait for it as those that came before do. Before, they were refused after a second.
func TestWhoComesLaterIsNotRefusedSooner(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		c.Isolate(leader)
		one, other := others(leader)[0], others(leader)[1]
		c.Cut(one, other)
		c.Cut(other, one)
		<-c.Store(one).Led().Done()
		<-c.Store(other).Led().Done()
		time.AfterFunc(electionMax, func() { c.Mend(one, other) })
		mustPut(t, c.Store(one), "/k", "w")
		if got := mustRead(t, c.Store(one), "/k"); got != "w" {
			t.Errorf("read %q", got)
		}
		if err := c.Store(one).Leaderless(); err != nil {
			t.Error(err)
		}
	})
}

// wantRefused: reads and writes end soon, and say why.
func wantRefused(t *testing.T, s *raftstore.Store) {
	t.Helper()
	begun := time.Now()
	if err := context.Cause(s.Led()); !errors.Is(err, raftstore.ErrNoLeader) || !errors.Is(s.Leaderless(), raftstore.ErrNoLeader) {
		t.Errorf("the server counts as led: %v", err)
	}
	if _, err := s.ReadIndex(t.Context()); !errors.Is(err, raftstore.ErrNoLeader) {
		t.Errorf("a read: %v", err)
	}
	if _, err := s.Propose(t.Context(), put("/refused", "v")); !errors.Is(err, raftstore.ErrNoLeader) || errors.Is(err, raftstore.ErrOutcomeUnknown) {
		t.Errorf("a write: %v", err)
	}
	if took := time.Since(begun); took > noticeMax {
		t.Errorf("refusing took %v", took)
	}
}
