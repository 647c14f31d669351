package raftstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// answerLost commits a put that a follower sent, keeps the leader's answer back,
// does what is asked meanwhile, and makes another server the leader. It returns
// what the follower's caller hears, and the number of the follower.
func answerLost(t *testing.T, c *raftstoretest.Cluster, meanwhile func(leader *raftstore.Store)) (result command.Result, follower int, err error) {
	t.Helper()
	leader := c.Leader()
	follower = others(leader)[0]
	before := mustPut(t, c.Store(follower), "/k", "v")
	c.Hold(leader, follower)
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = c.Store(follower).Propose(t.Context(), put("/k", "w"))
	}()
	if _, err := c.Store(leader).WaitRevision(t.Context(), before+1); err != nil {
		t.Fatal(err)
	}
	meanwhile(c.Store(leader))
	if err := c.Store(leader).TransferLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Leader(others(leader)...)
	<-done
	c.Heal()
	return result, follower, err
}

// TestAnAnswerLostIsNoSecondWrite: the answer of the old leader never comes; the
// new one remembers it.
func TestAnAnswerLostIsNoSecondWrite(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		result, follower, err := answerLost(t, c, func(*raftstore.Store) {})
		if err != nil || result.Code != command.OK {
			t.Fatalf("%+v, %v", result, err)
		}
		root, err := c.Store(follower).ReadIndex(t.Context())
		if err != nil || root.Revision != result.Revision || root.Revision != 2 {
			t.Errorf("at revision %d after two writes, the last told %d: %v", root.Revision, result.Revision, err)
		}
	})
}

// TestARetryOfAnEvictedSessionIsUnknown: nobody can know any more whether the
// first try took effect, so it is neither told nor tried anew.
func TestARetryOfAnEvictedSessionIsUnknown(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		result, follower, err := answerLost(t, c, func(leader *raftstore.Store) {
			for range state.MaxSessions {
				opened, err := leader.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.OpenSession}}})
				if err != nil || opened.Code != command.OK {
					t.Fatalf("%+v, %v", opened, err)
				}
			}
		})
		if !errors.Is(err, raftstore.ErrOutcomeUnknown) {
			t.Errorf("%+v, %v", result, err)
		}
		root, err := c.Store(follower).ReadIndex(t.Context())
		if err != nil || root.Revision != 2 {
			t.Errorf("at revision %d after two writes: %v", root.Revision, err)
		}
	})
}

// TestPreconditionsAreJudgedInTheLog: a follower that has not seen a write yet
// does not refuse what depends on it.
func TestPreconditionsAreJudgedInTheLog(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		follower := c.Store(others(leader)[0])
		mustPut(t, follower, "/k", "1")
		revision := mustPut(t, c.Store(leader), "/k", "2")
		if follower.Root().Revision >= revision {
			t.Fatal("the follower does not lag: the test shows nothing")
		}
		next := put("/k", "3")
		next.Ops[0].Precondition, next.Ops[0].Revision = command.AtRevision, revision
		if result, err := follower.Propose(t.Context(), next); err != nil || result.Code != command.OK {
			t.Errorf("at the newest revision: %+v, %v", result, err)
		}
		if result, err := c.Store(leader).Propose(t.Context(), next); err != nil || result.Code != command.PreconditionFailed {
			t.Errorf("the same again: %+v, %v", result, err)
		}
	})
}

// TestAWatchGoesOnOnARestartedServer: what happened while a server was down is in
// its ring when it is back, be it from the log or from a snapshot.
func TestAWatchGoesOnOnARestartedServer(t *testing.T) {
	for name, snapshotBytes := range map[string]int64{"log": 1 << 30, "snapshot": 20_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Timing.SnapshotBytes = snapshotBytes })
				defer c.Close()
				leader := c.Leader()
				away := others(leader)[0]
				seen := mustPut(t, c.Store(away), "/k", "seen")
				c.Crash(away)
				var last uint64
				for range 200 {
					last = mustPut(t, c.Store(leader), "/k", string(make([]byte, 300)))
				}
				c.Restart(away)
				mustRead(t, c.Store(away), "/k")
				w, err := c.Store(away).Watch("/k", seen)
				if err != nil {
					t.Fatalf("resuming at %d, now at %d: %v", seen, last, err)
				}
				defer w.Close()
				for next := seen + 1; next <= last; {
					events, err := w.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range events {
						if e.Revision != next {
							t.Fatalf("event %d, want %d", e.Revision, next)
						}
						next++
					}
					if progress := w.Progress(); progress >= next && progress < last {
						t.Fatalf("progress %d before event %d", progress, next)
					}
				}
			})
		})
	}
}

// addLearner starts a server that stays without a vote: its word that it has
// caught up does not get through.
func addLearner(t *testing.T, c *raftstoretest.Cluster, leader int, name string) int {
	t.Helper()
	learner := c.Join(name)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	added := make(chan error, 1)
	go func() { added <- c.Store(leader).AddMember(ctx, name, name) }()
	for !isMember(c.Store(leader), name) {
		time.Sleep(time.Millisecond)
	}
	c.Hold(learner, leader)
	if err := <-added; err == nil {
		t.Fatalf("%s was added before it said that it caught up", name)
	}
	for _, s := range c.Store(leader).Status().Servers {
		if raftstore.MemberName(s.ID) == name && s.Voter {
			t.Fatalf("%s has a vote before it caught up", name)
		}
	}
	c.Release(learner, leader)
	return learner
}

func isMember(s *raftstore.Store, name string) bool {
	return slices.ContainsFunc(s.Status().Servers, func(server raftstore.ServerStatus) bool {
		return raftstore.MemberName(server.ID) == name
	})
}

func TestALearnerVotesOnceItCaughtUp(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		learner := addLearner(t, c, leader, "server-4")
		if err := c.Store(leader).AddMember(t.Context(), "server-4", "server-4"); err != nil {
			t.Fatalf("added again: %v", err)
		}
		if got := mustRead(t, c.Store(learner), "/k"); got != "v" {
			t.Errorf("the new voter reads %q", got)
		}
	})
}
