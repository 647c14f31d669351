package raftstore_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// slowSync is how long a slow disk takes for a write: it does not hang, so the server goes on.
const slowSync = 3 * time.Second

// A leader with a slow disk has another lead, although raft could hand over only after the write. Before, it led on, and
// each commit took as long as its disk.
func TestALeaderWithASlowDiskGivesWay(t *testing.T) {
	for _, servers := range []int{3, 5} {
		inQuiet(t, servers, func(t *testing.T, c *raftstoretest.Cluster) {
			slow := c.Leader()
			mustPut(t, c.Store(slow), "/k", "v")
			c.SlowDown(slow, slowSync)
			begun := time.Now()
			var writing sync.WaitGroup
			for i := range servers {
				atMost := slowSync // for an answer from the next leader
				if i == slow {
					atMost = 2*slowSync + time.Second // its own write may come in a second batch, after the first
				}
				writing.Go(func() {
					mustPut(t, c.Store(i), "/k", "w")
					if took := time.Since(begun); took > atMost {
						t.Errorf("%d servers: a write by server %d of the slow %d took %v", servers, i, slow, took)
					}
				})
			}
			time.Sleep(2 * time.Second)
			if waits := c.Store(slow).Status().SyncP99; waits < 2*time.Second {
				t.Errorf("the write under way does not count: P99 is %v", waits)
			}
			next := c.Leader(without(servers, slow)...)
			writing.Wait()
			begun = time.Now()
			for range 20 {
				for i := range servers {
					mustPut(t, c.Store(i), "/k", "x")
				}
			}
			if took := time.Since(begun); took > slowSync {
				t.Errorf("with another leader the writes took %v", took)
			}
			if now := c.Leader(); now != next {
				t.Errorf("%d leads, it was %d", now, next)
			}
		})
	}
}

// Where no majority is quick, to hand over is of no use: the leader stays, and serves as fast as the disks are.
func TestALeaderStaysWhereOthersAreSlowToo(t *testing.T) {
	for name, slow := range map[string]int{"one other": 1, "all": 2} {
		t.Run(name, func(t *testing.T) {
			inQuiet(t, 3, func(t *testing.T, c *raftstoretest.Cluster) {
				leader := c.Leader()
				for _, i := range others(leader)[:slow] {
					c.SlowDown(i, slowSync)
				}
				mustPut(t, c.Store(leader), "/k", "v")
				time.Sleep(2 * slowSync) // the other has written it too, slowly
				term := c.Store(leader).Leadership().Term
				c.SlowDown(leader, slowSync)
				for range 10 {
					mustPut(t, c.Store(leader), "/k", "w")
				}
				if l := c.Store(leader).Leadership(); !l.Leader || l.Term != term {
					t.Errorf("the lead went in vain: %+v", l)
				}
				if err := c.Store(leader).Leaderless(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A disk that is slow once costs one election at most.
func TestASlowMomentCostsOneElection(t *testing.T) {
	inQuiet(t, 3, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		elections := c.Store(leader).Status().Elections
		c.SlowDown(leader, 2*time.Second)
		mustPut(t, c.Store(leader), "/k", "w")
		c.SlowDown(leader, 0)
		for range 100 {
			mustPut(t, c.Store(leader), "/k", "x")
			time.Sleep(time.Second)
		}
		if now := c.Store(leader).Status().Elections; now > elections+1 {
			t.Errorf("%d elections", now-elections)
		}
	})
}

// inQuiet runs a test on n servers in fake time.
func inQuiet(t *testing.T, n int, test func(*testing.T, *raftstoretest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, n, nil)
		defer c.Close()
		test(t, c)
	})
}

func without(n, one int) (rest []int) {
	for i := range n {
		if i != one {
			rest = append(rest, i)
		}
	}
	return rest
}
