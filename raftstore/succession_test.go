package raftstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// atOnce is much less than raft's shortest timeout.
const atOnce = 150 * time.Millisecond

// leaderAfter crashes the leader and returns who leads next, and after how long. It takes
// one election.
func leaderAfter(t *testing.T, c *raftstoretest.Cluster, crash int) (next int, gap time.Duration) {
	t.Helper()
	term := c.Store(crash).Leadership().Term
	c.Crash(crash)
	crashed := time.Now()
	next = c.Leader()
	gap = time.Since(crashed)
	time.Sleep(time.Second)
	if now := c.Store(next).Leadership(); !now.Leader || now.Term != term+1 {
		t.Errorf("a second after the crash in term %d: %+v", term, now)
	}
	return next, gap
}

func TestAKilledLeaderIsReplacedAtOnce(t *testing.T) {
	for _, servers := range []int{3, 5} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, servers, nil)
				defer c.Close()
				for kill := range 6 {
					leader := c.Leader()
					key := fmt.Sprintf("/k/%d", kill)
					mustPut(t, c.Store(leader), key, "v")
					next, gap := leaderAfter(t, c, leader)
					if gap > atOnce {
						t.Errorf("kill %d: no leader for %v", kill, gap)
					}
					if got := mustRead(t, c.Store(next), key); got != "v" {
						t.Errorf("kill %d: the write is lost", kill)
					}
					c.Restart(leader)
					mustPut(t, c.Store(leader), key, "again")
				}
			})
		})
	}
}

// TestTheLongestLogSucceeds: the voter that would ask first lacks an entry, and could not win.
func TestTheLongestLogSucceeds(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		first, second := others(leader)[0], others(leader)[1]
		if c.Name(first) > c.Name(second) {
			first, second = second, first
		}
		c.Hold(leader, first)
		mustPut(t, c.Store(leader), "/k", "v")
		next, gap := leaderAfter(t, c, leader)
		if next != second || gap > atOnce {
			t.Errorf("server %d leads after %v, want %d", next, gap, second)
		}
		c.Release(leader, first)
	})
}

// TestOneVoterDeposesNobody: it finds the leader gone, the others do not.
func TestOneVoterDeposesNobody(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		term := c.Store(leader).Leadership().Term
		for _, other := range others(leader) {
			c.Refuse(other, leader)
			time.Sleep(5 * time.Second)
			c.Allow(other, leader)
		}
		if now := c.Store(leader).Leadership(); !now.Leader || now.Term != term {
			t.Errorf("leadership is %+v, was in term %d", now, term)
		}
	})
}

// TestASilentLeaderIsLeftToTheTimers: a machine cut off refuses no connection.
func TestASilentLeaderIsLeftToTheTimers(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		c.Isolate(leader)
		cut := time.Now()
		c.Leader(others(leader)...)
		if gap := time.Since(cut); gap < atOnce || gap > 3*time.Second {
			t.Errorf("another leads after %v", gap)
		}
	})
}
