package raftstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// inCluster runs a test on three servers in fake time.
func inCluster(t *testing.T, test func(*testing.T, *raftstoretest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		test(t, c)
	})
}

func put(key, value string) command.Command {
	return command.Command{Ops: []command.Op{{Kind: command.Put, Key: key, Value: []byte(value)}}}
}

// mustPut writes through a store and returns the revision.
func mustPut(t *testing.T, s *raftstore.Store, key, value string) uint64 {
	t.Helper()
	result, err := s.Propose(t.Context(), put(key, value))
	if err != nil || result.Code != command.OK {
		t.Fatalf("put %s: %v %v", key, result, err)
	}
	return result.Revision
}

// mustRead reads a key linearizably.
func mustRead(t *testing.T, s *raftstore.Store, key string) string {
	t.Helper()
	root, err := s.ReadIndex(t.Context())
	if err != nil {
		t.Fatalf("read index: %v", err)
	}
	record, ok := root.Get(key)
	if !ok {
		return ""
	}
	return string(record.Value)
}

// others returns the servers beside one.
func others(i int) []int { return []int{(i + 1) % 3, (i + 2) % 3} }

func TestWritesAndReadsOnEveryServer(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		for i := range c.Size() {
			mustPut(t, c.Store(i), fmt.Sprintf("/k/%d", i), "v")
		}
		for i := range c.Size() {
			for j := range c.Size() {
				if got := mustRead(t, c.Store(i), fmt.Sprintf("/k/%d", j)); got != "v" {
					t.Errorf("server %d reads key %d as %q (leader %d)", i, j, got, leader)
				}
			}
		}
	})
}

// TestFollowerReadsItsOwnWrite: of three servers the follower's word proves the read, of
// five the leader asks a quorum.
func TestFollowerReadsItsOwnWrite(t *testing.T) {
	for _, servers := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := raftstoretest.StartCluster(t, servers, nil)
			defer c.Close()
			follower := c.Store((c.Leader() + 1) % servers)
			for i := range 20 {
				value := fmt.Sprint(i)
				revision := mustPut(t, follower, "/k", value)
				if got := mustRead(t, follower, "/k"); got != value {
					t.Fatalf("of %d: after write %d read %q", servers, i, got)
				}
				if root := follower.Root(); root.Revision < revision {
					t.Fatalf("of %d: local revision %d after a read of %d", servers, root.Revision, revision)
				}
			}
		})
	}
}

// TestAFollowerLearnsOfACommitByReading: while nothing else is written, a read on a
// follower does not wait until raft tells it so by itself.
func TestAFollowerLearnsOfACommitByReading(t *testing.T) {
	for _, servers := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := raftstoretest.StartCluster(t, servers, nil)
			defer c.Close()
			for i := range 20 {
				revision := mustPut(t, c.Store(c.Leader()), "/k", fmt.Sprint(i))
				follower := c.Store((c.Leader() + 1 + i%(servers-1)) % servers)
				behind, begun := follower.Root().Revision < revision, time.Now()
				mustRead(t, follower, "/k")
				if took := time.Since(begun); behind && took > time.Millisecond {
					t.Errorf("of %d: read %d took %v", servers, i, took)
				}
			}
		})
	}
}

// TestWhoComesBackIsNotMissed: a server that was down, or cut off, for long reads at once.
func TestWhoComesBackIsNotMissed(t *testing.T) {
	away := map[string]func(c *raftstoretest.Cluster, i int){
		"down": func(c *raftstoretest.Cluster, i int) {
			c.Crash(i)
			time.Sleep(time.Minute)
			c.Restart(i)
		},
		"cut off": func(c *raftstoretest.Cluster, i int) {
			c.Isolate(i)
			time.Sleep(time.Minute)
			c.Heal()
		},
	}
	for name, leave := range away {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
				leader := c.Leader()
				follower := others(leader)[0]
				mustPut(t, c.Store(leader), "/k", "before")
				go func() {
					time.Sleep(30 * time.Second)
					mustPut(t, c.Store(leader), "/k", "meanwhile")
				}()
				leave(c, follower)
				back := time.Now()
				if got := mustRead(t, c.Store(follower), "/k"); got != "meanwhile" {
					t.Errorf("read %q", got)
				}
				if took := time.Since(back); took > time.Second {
					t.Errorf("it read after %v", took)
				}
			})
		})
	}
}

func TestWritesSurviveLeaderCrash(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		for i := range 50 {
			mustPut(t, c.Store(leader), fmt.Sprintf("/k/%d", i), "v")
		}
		c.Crash(leader)
		start := time.Now()
		next := c.Leader(others(leader)...)
		if gap := time.Since(start); gap > 3*time.Second {
			t.Errorf("no leader for %v", gap)
		}
		for i := range 50 {
			if got := mustRead(t, c.Store(next), fmt.Sprintf("/k/%d", i)); got != "v" {
				t.Errorf("key %d is lost", i)
			}
		}
		c.Restart(leader)
		mustPut(t, c.Store(leader), "/again", "v")
		if got := mustRead(t, c.Store(leader), "/again"); got != "v" {
			t.Errorf("restarted server reads %q", got)
		}
	})
}

// The barrier trap: a leader just elected has all acknowledged writes in its log,
// but not yet in its state.
func TestReadsAfterFailoverSeeEveryAcknowledgedWrite(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		for round := range 8 {
			leader := c.Leader()
			var value string
			for i := range 5 {
				value = fmt.Sprintf("%d-%d", round, i)
				mustPut(t, c.Store(leader), "/k", value)
			}
			c.Crash(leader)
			for _, i := range others(leader) {
				if got := mustRead(t, c.Store(i), "/k"); got != value {
					t.Fatalf("round %d: server %d read %q after the failover", round, i, got)
				}
			}
			c.Restart(leader)
		}
	})
}

func TestPartitionedLeaderServesNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		old := c.Leader()
		mustPut(t, c.Store(old), "/k", "before")
		c.Isolate(old)
		next := c.Leader(others(old)...)
		mustPut(t, c.Store(next), "/k", "after")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if root, err := c.Store(old).ReadIndex(ctx); err == nil {
			record, _ := root.Get("/k")
			t.Errorf("isolated server answered a read with %q", record.Value)
		}
		c.Heal()
		if got := mustRead(t, c.Store(old), "/k"); got != "after" {
			t.Errorf("healed server reads %q", got)
		}
	})
}

// A counter is incremented by read-modify-write while leaders come and go; each
// increment acknowledged must have taken effect exactly once.
func TestRetriesTakeEffectOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		c.Leader()
		writer := c.Store(0)
		const writes = 60
		done := make(chan error, 1)
		go func() {
			for range writes {
				if result, err := writer.Propose(context.Background(), put("/counted", "v")); err != nil || result.Code != command.OK {
					done <- fmt.Errorf("%v: %w", result, err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			done <- nil
		}()
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			if leader := c.Leader(); leader != 0 {
				c.Isolate(leader)
				time.Sleep(1500 * time.Millisecond)
				c.Heal()
			} else if err := writer.TransferLeadership(t.Context()); err != nil {
				t.Log(err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		root, err := writer.ReadIndex(t.Context())
		if err != nil || root.Revision != writes {
			t.Errorf("revision %d after %d writes, %v", root.Revision, writes, err)
		}
	})
}

func TestStaleFenceIsRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		fence := c.Store(leader).Leadership().Term
		fenced := put("/k", "v")
		fenced.Fence = fence
		if result, err := c.Store(leader).Propose(t.Context(), fenced); err != nil || result.Code != command.OK {
			t.Fatalf("fresh fence: %v %v", result, err)
		}
		if err := c.Store(leader).TransferLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Leader(others(leader)...)
		if result, err := c.Store(leader).Propose(t.Context(), fenced); err != nil || result.Code != command.FenceStale {
			t.Errorf("stale fence: %v %v", result, err)
		}
	})
}

func TestLeadershipLostAndWonShowsAsANewTerm(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		changes := c.Store(leader).LeadershipChanges(t.Context())
		first := <-changes
		if !first.Leader || !first.Ready {
			t.Fatalf("first report %+v", first)
		}
		c.Isolate(leader)
		time.Sleep(5 * time.Second)
		c.Heal()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		last := <-changes
		if last.Term <= first.Term || last.LeaderID == "" {
			t.Errorf("after the partition %+v, before %+v", last, first)
		}
	})
}

func TestShutdownHandsLeadershipOver(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		start := time.Now()
		c.Stop(leader)
		c.Leader(others(leader)...)
		if gap := time.Since(start); gap > 200*time.Millisecond {
			t.Errorf("handing over took %v", gap)
		}
	})
}

func TestWithoutQuorumNothingIsAcknowledged(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		for _, i := range others(leader) {
			c.Crash(i)
		}
		_, err := c.Store(leader).Propose(t.Context(), put("/k", "w"))
		if !errors.Is(err, raftstore.ErrOutcomeUnknown) || !errors.Is(err, raftstore.ErrNoLeader) {
			t.Errorf("propose without quorum: %v", err)
		}
	})
}

func TestClusterGetsItsIdentity(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		c.Leader()
		mustPut(t, c.Store(0), "/k", "v")
		time.Sleep(100 * time.Millisecond)
		for i := range c.Size() {
			if got := c.Store(i).Status().ClusterID; got != "test" {
				t.Errorf("server %d: cluster id %q", i, got)
			}
		}
	})
}

func TestLoneServerServesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := raftstoretest.StartCluster(t, 1, nil)
		defer c.Close()
		mustPut(t, c.Store(0), "/k", "v")
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("first write after %v: it waited for a leader that cannot exist", took)
		}
		c.Crash(0)
		c.Restart(0)
		start = time.Now()
		if got := mustRead(t, c.Store(0), "/k"); got != "v" {
			t.Errorf("read %q after a restart", got)
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("first read after a restart took %v", took)
		}
	})
}
