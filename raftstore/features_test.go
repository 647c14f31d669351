package raftstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// settleTime is enough for a leader to be elected and to ask all members twice.
const settleTime = 15 * time.Second

// releases tells which feature level each server's binary has.
type releases struct {
	mu     sync.Mutex
	levels map[string]uint64
}

func (r *releases) install(name string, level uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.levels[name] = level
}

func (r *releases) configure(cfg *raftstore.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cfg.FeatureLevel = r.levels[cfg.Name]
}

// writeOn writes through whichever server is up until ctx ends.
func writeOn(ctx context.Context, c *raftstoretest.Cluster) {
	for i := 0; ctx.Err() == nil; i++ {
		if s := c.Store(i % c.Size()); s != nil {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			_, _ = s.Propose(limited, put(fmt.Sprintf("/load/%d", i%50), fmt.Sprint(i)))
			cancel()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func wantLevel(t *testing.T, c *raftstoretest.Cluster, want uint64) {
	t.Helper()
	for i := range c.Size() {
		if s := c.Store(i); s != nil && s.Status().FeatureLevel != want {
			t.Errorf("server %d is at level %d, want %d", i, s.Status().FeatureLevel, want)
		}
	}
}

func TestFeatureLevelFollowsTheOldestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &releases{levels: map[string]uint64{}}
		c := raftstoretest.StartCluster(t, 3, r.configure)
		defer c.Close()
		time.Sleep(settleTime)
		wantLevel(t, c, raftstore.FeatureLevel)
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		load.Go(func() { writeOn(ctx, c) })
		for i := range 3 {
			wantLevel(t, c, raftstore.FeatureLevel)
			c.Stop(i)
			r.install(fmt.Sprintf("server-%d", i+1), raftstore.FeatureLevel+1)
			c.Restart(i)
			time.Sleep(settleTime)
		}
		wantLevel(t, c, raftstore.FeatureLevel+1)
		stop()
		load.Wait()
		revision := mustPut(t, c.Store(0), "/last", "v")
		for i := range 3 {
			if _, err := c.Store(i).WaitRevision(t.Context(), revision); err != nil {
				t.Fatal(err)
			}
			if c.StateHash(i) != c.StateHash(0) {
				t.Errorf("server %d has another state", i)
			}
		}
	})
}

func TestFeatureLevelWaitsForAServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := uint64(raftstore.FeatureLevel - 1)
		r := &releases{levels: map[string]uint64{"server-1": old, "server-2": old, "server-3": old}}
		c := raftstoretest.StartCluster(t, 3, r.configure)
		defer c.Close()
		time.Sleep(settleTime)
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		for i := range 3 {
			c.Stop(i)
			r.install(fmt.Sprintf("server-%d", i+1), raftstore.FeatureLevel)
		}
		c.Restart(0)
		c.Restart(1)
		time.Sleep(settleTime)
		wantLevel(t, c, old)
		c.Restart(2)
		time.Sleep(settleTime)
		wantLevel(t, c, raftstore.FeatureLevel)
	})
}

// TestAHeldLevelStaysUntilItIsLetGo: all have the new release, one holds; a new member is taken meanwhile, and one that holds less than
// was reached holds nothing.
func TestAHeldLevelStaysUntilItIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := uint64(raftstore.FeatureLevel - 1)
		r, holds := &releases{levels: map[string]uint64{"server-1": old, "server-2": old, "server-3": old}}, map[string]uint64{}
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			r.configure(cfg)
			cfg.HoldFeatureLevel = holds[cfg.Name]
		})
		defer c.Close()
		time.Sleep(settleTime)
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		again := func(name string, hold uint64) {
			i := int(name[len(name)-1] - '1')
			c.Stop(i)
			r.install(name, raftstore.FeatureLevel)
			holds[name] = hold
			c.Restart(i)
			time.Sleep(settleTime)
		}
		again("server-1", 0)
		again("server-2", old)
		again("server-3", 0)
		wantLevel(t, c, old)
		again("server-2", old) // the only one that holds: it answers before it has its state back
		wantLevel(t, c, old)
		holds["server-4"] = 1
		c.Join("server-4")
		if err := c.Store(c.Leader()).AddMember(t.Context(), "server-4", "server-4"); err != nil {
			t.Errorf("a new member was refused: %v", err)
		}
		time.Sleep(settleTime)
		wantLevel(t, c, old)
		again("server-2", 0)
		wantLevel(t, c, old)
		again("server-4", 0)
		wantLevel(t, c, raftstore.FeatureLevel)
		again("server-1", 1)
		wantLevel(t, c, raftstore.FeatureLevel)
	})
}

// Nobody can misread what is not there, so whoever is late does not hold the founders back.
func TestANewClusterBeginsAtTheLevelOfItsFounders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.NewCluster(t, 3, nil)
		defer c.Close()
		c.Restart(0)
		c.Restart(1)
		time.Sleep(settleTime)
		wantLevel(t, c, raftstore.FeatureLevel)
	})
}

func TestOldReleaseStopsAtANewerLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &releases{levels: map[string]uint64{"server-1": 2, "server-2": 2, "server-3": 2}}
		c := raftstoretest.StartCluster(t, 3, r.configure)
		defer c.Close()
		time.Sleep(settleTime)
		wantLevel(t, c, 2)
		c.Stop(2)
		r.install("server-3", 1)
		c.Restart(2)
		time.Sleep(settleTime)
		if err := c.Fatal(2); !errors.Is(err, raftstore.ErrFeatureLevel) {
			t.Errorf("a downgraded server stopped with %v", err)
		}
		c.Forgive(2)
		c.Stop(2)
		revision := mustPut(t, c.Store(0), "/k", "v")
		r.install("server-3", 2)
		c.Restart(2)
		if _, err := c.Store(2).WaitRevision(t.Context(), revision); err != nil {
			t.Errorf("upgraded again: %v", err)
		}
		r.install("server-4", 1)
		c.Join("server-4")
		ctx, cancel := context.WithTimeout(t.Context(), settleTime)
		defer cancel()
		err := c.Store(c.Leader()).AddMember(ctx, "server-4", "server-4")
		if !errors.Is(err, raftstore.ErrFeatureLevel) {
			t.Errorf("an old server was added: %v", err)
		}
	})
}

// A command that only SetFeatureLevel may carry never lowers the level.
func TestFeatureLevelNeverFalls(t *testing.T) {
	local := raftstoretest.NewLocal(state.Options{})
	for _, level := range []uint64{3, 2} {
		_, err := local.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: level}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := local.Root().FeatureLevel; got != 3 {
		t.Errorf("level %d", got)
	}
}
