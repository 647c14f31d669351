package raftstore_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// alone starts a store without peers on a disk in memory.
func alone(t *testing.T, disk *raftstore.Memory) *raftstoretest.Cluster {
	return raftstoretest.StartCluster(t, 1, func(cfg *raftstore.Config) { cfg.Disk = raftstore.MemoryDisk(disk) })
}

// TestFork: a fork has what was acknowledged before, goes on at the same revision, and neither sees the other's
// writes; a fork can be forked, and a store that did not change since its last fork too.
func TestFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := alone(t, raftstore.NewMemory(true))
		defer first.Close()
		origin := first.Store(first.Leader())
		for i := range 50 {
			mustPut(t, origin, fmt.Sprintf("/k%d", i), "v")
		}
		for n := range 3 {
			byOrigin := fmt.Sprintf("/origin%d", n)
			disk, err := origin.Fork(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := alone(t, disk)
			fork := c.Store(c.Leader())
			if got, want := fork.Root().Revision, origin.Root().Revision; got != want {
				t.Errorf("the fork is at revision %d, its origin at %d", got, want)
			}
			_, want := origin.StateHash()
			if _, got := fork.StateHash(); got != want {
				t.Error("the fork has another state")
			}
			mustPut(t, fork, "/fork", "v")
			mustPut(t, origin, byOrigin, "v")
			if _, found := fork.Root().Get(byOrigin); found {
				t.Error("the fork sees what its origin wrote later")
			}
			if _, found := origin.Root().Get("/fork"); found {
				t.Error("the origin sees what a fork wrote")
			}
			again, err := fork.Fork(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			second := alone(t, again)
			if _, found := second.Store(second.Leader()).Root().Get("/fork"); !found {
				t.Error("a fork of a fork lacks what that wrote")
			}
			second.Close()
			c.Close()
		}
	})
}

// TestForkNeedsMemory: with peers or files there is nothing to share.
func TestForkNeedsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		if _, err := c.Store(c.Leader()).Fork(t.Context()); !errors.Is(err, replica.ErrNoFork) {
			t.Errorf("fork: %v", err)
		}
	})
}
