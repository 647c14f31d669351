package raftstore_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// inAltered runs a test on a cluster of which server 0 has another value under /k than the
// others, and which has only the servers given up. It leads if it should, and never
// otherwise.
func inAltered(t *testing.T, servers int, leads bool, up []int, test func(*testing.T, *raftstoretest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		altered := false
		c := raftstoretest.StartCluster(t, servers, func(cfg *raftstore.Config) {
			if altered && (cfg.Name == "server-1") != leads {
				cfg.Timing.HeartbeatTimeout, cfg.Timing.ElectionTimeout = 5*time.Second, 5*time.Second
			}
		})
		defer c.Close()
		mustPut(t, c.Store(c.Leader()), "/k", "right")
		time.Sleep(time.Second)
		for i := range servers {
			c.Crash(i)
		}
		c.Alter(0, "/k")
		altered = true
		for _, i := range up {
			c.Restart(i)
		}
		test(t, c)
	})
}

// wantStopped checks which servers stopped themselves, and forgives them.
func wantStopped(t *testing.T, c *raftstoretest.Cluster, want map[int]error) {
	t.Helper()
	for i := range c.Size() {
		if err := c.Fatal(i); !errors.Is(err, want[i]) {
			t.Errorf("server %d stopped for %v, want %v", i, err, want[i])
		}
		if want[i] != nil {
			c.Forgive(i)
		}
	}
}

// TestTheMinorityStops: one of three or five differs from the others, which are right.
func TestTheMinorityStops(t *testing.T) {
	for _, servers := range []int{3, 5} {
		for _, leads := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d servers, leader %v", servers, leads), func(t *testing.T) {
				up := []int{0, 1, 2, 3, 4}[:servers]
				inAltered(t, servers, leads, up, func(t *testing.T, c *raftstoretest.Cluster) {
					if leader := c.Leader(); (leader == 0) != leads {
						t.Fatalf("server %d leads", leader)
					}
					time.Sleep(5 * time.Second)
					wantStopped(t, c, map[int]error{0: raftstore.ErrDiverged})
					c.Crash(0)
					c.Leader()
					for _, i := range up[1:] {
						if got := mustRead(t, c.Store(i), "/k"); got != "right" {
							t.Errorf("server %d reads %q", i, got)
						}
					}
					c.Restart(0) // with its data set aside
					time.Sleep(10 * time.Second)
					if got := mustRead(t, c.Store(0), "/k"); got != "right" {
						t.Errorf("server 0, come back, reads %q", got)
					}
				})
			})
		}
	}
}

// TestWhoComesBackIsCompared: the others go on under the same leader meanwhile.
func TestWhoComesBackIsCompared(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "right")
		time.Sleep(time.Second)
		away := others(leader)[0]
		c.Crash(away)
		c.Alter(away, "/k")
		c.Restart(away)
		time.Sleep(5 * time.Second)
		wantStopped(t, c, map[int]error{away: raftstore.ErrDiverged})
		c.Crash(away)
	})
}

// TestWithoutAMajorityTheFollowerGivesWay: the third server is away, or there is none. When
// it comes back, whoever differs from both others goes, be it the leader.
func TestWithoutAMajorityTheFollowerGivesWay(t *testing.T) {
	for _, servers := range []int{2, 3} {
		for _, leads := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d servers, leader %v", servers, leads), func(t *testing.T) {
				inAltered(t, servers, leads, []int{0, 1}, func(t *testing.T, c *raftstoretest.Cluster) {
					follower := 1 - c.Leader()
					if (follower == 1) != leads {
						t.Fatalf("server %d follows", follower)
					}
					time.Sleep(15 * time.Second)
					wantStopped(t, c, map[int]error{follower: raftstore.ErrUndecided})
					if servers == 2 {
						return
					}
					c.Crash(follower)
					c.Restart(2)
					c.Restart(follower)
					time.Sleep(20 * time.Second)
					wantStopped(t, c, map[int]error{0: raftstore.ErrDiverged})
					c.Crash(0)
					c.Leader(1, 2)
					if got := mustRead(t, c.Store(1), "/k"); got != "right" {
						t.Errorf("the majority reads %q", got)
					}
				})
			})
		}
	}
}

// TestAWordThatNobodySharesStopsNobody: an entry claims a hash that no server has.
func TestAWordThatNobodySharesStopsNobody(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		revision := mustPut(t, c.Store(leader), "/k", "v")
		_, err := c.Store(leader).Propose(t.Context(), command.Command{Ops: []command.Op{{
			Kind: command.StateHash, Revision: revision, Value: make([]byte, command.HashBytes),
		}}})
		if err != nil {
			t.Error(err)
		}
		time.Sleep(15 * time.Second)
		wantStopped(t, c, nil)
		if got := mustRead(t, c.Store(others(leader)[0]), "/k"); got != "v" {
			t.Errorf("read %q", got)
		}
	})
}
