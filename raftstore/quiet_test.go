package raftstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// TestIdleServersAreQuiet: what three servers write to each other while nobody asks anything is heartbeats, which
// failover rests on, and little else. Each write wakes two processes.
func TestIdleServersAreQuiet(t *testing.T) {
	// While nothing is late a leader's heartbeats are two fifths of 500 ms apart; each is a request and an answer, to two followers.
	const heartbeats = 2 * 2 * 1000 / 200
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		time.Sleep(10 * time.Second)
		before, seconds := c.Written(), 30
		time.Sleep(time.Duration(seconds) * time.Second)
		if each := (c.Written() - before) / int64(seconds); each > heartbeats*2 {
			t.Errorf("%d writes a second, %d of them heartbeats", each, heartbeats)
		}
	})
}

// TestAShortLeaseLasts: a calm leader whose lease is shorter than the followers' patience sends often enough for both.
func TestAShortLeaseLasts(t *testing.T) {
	for _, lease := range []time.Duration{120 * time.Millisecond, 190 * time.Millisecond, 400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Timing.LeaderLease = lease })
			defer c.Close()
			mustPut(t, c.Store(c.Leader()), "/k", "v")
			before := c.Store(c.Leader()).Leadership().Term
			time.Sleep(time.Minute)
			if after := c.Store(c.Leader()).Leadership().Term; after != before {
				t.Errorf("a lease of %v: term %d, and a quiet minute later %d", lease, before, after)
			}
		})
	}
}

// TestFollowersAreToldOfTheLastCommit: watches and reads of the past on a follower see what was written last, although nobody
// asks there for the newest and no other entry follows.
func TestFollowersAreToldOfTheLastCommit(t *testing.T) {
	for _, servers := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := raftstoretest.StartCluster(t, servers, nil)
			defer c.Close()
			for i := range 20 {
				revision := mustPut(t, c.Store(c.Leader()), "/k", fmt.Sprint(i))
				if time.Sleep(6 * time.Millisecond); i%2 == 0 {
					time.Sleep(time.Second) // what follows is the first entry for a while
				}
				for j := range servers {
					if got := c.Store(j).Root().Revision; got < revision {
						t.Errorf("of %d: server %d is at %d, after write %d of %d", servers, j, got, i, revision)
					}
				}
			}
		})
	}
}
