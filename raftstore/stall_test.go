package raftstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// shutdownMax is more than the limits of a shutdown together.
const shutdownMax = 20 * time.Second

// A disk that hangs holds up neither a shutdown nor, on a leader, the cluster.
func TestShutdownDoesNotWaitForAHangingDisk(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, 3, nil)
				defer c.Close()
				at := c.Leader()
				if who == "follower" {
					at = others(at)[0]
				}
				mustPut(t, c.Store(at), "/k", "v")
				c.Stall(at)
				for i := range 20 {
					go c.Store(at).Propose(t.Context(), put(fmt.Sprintf("/k/%d", i), "v"))
				}
				synctest.Wait()
				begun := time.Now()
				// Handing over is bounded by itself, but raft forgets who waits for it.
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := c.Store(at).Shutdown(ended); err != nil && !errors.Is(err, replica.ErrDiskStalled) {
					t.Errorf("shutdown: %v", err)
				}
				if took := time.Since(begun); took > shutdownMax {
					t.Errorf("shutdown took %v", took)
				}
				c.Resume(at)
				c.Forgive(at)
				mustPut(t, c.Store(c.Leader(others(at)...)), "/after", "v")
			})
		})
	}
}

// A leader whose disk hangs stops, and another takes over.
func TestLeaderWithAHangingDiskGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		at := c.Leader()
		c.Stall(at)
		go c.Store(at).Propose(t.Context(), put("/k", "v"))
		time.Sleep(15 * time.Second)
		if err := c.Fatal(at); !errors.Is(err, replica.ErrDiskStalled) {
			t.Errorf("stopped for %v", err)
		}
		c.Forgive(at)
		c.Resume(at)
		c.Crash(at)
		mustPut(t, c.Store(c.Leader()), "/after", "v")
	})
}

const (
	powerCuts = 200
	// cutsPerCluster spreads them over clusters with logs of different ages.
	cutsPerCluster = 20
)

// The power of one server, or of all at once, is cut again and again while clients
// write. Nothing acknowledged is lost.
func TestPowerCutsLoseNothingAcknowledged(t *testing.T) {
	acknowledged, cuts := 0, powerCuts
	if testing.Short() {
		cuts /= 10
	}
	for seed := range uint64(cuts / cutsPerCluster) {
		synctest.Test(t, func(t *testing.T) {
			acknowledged += cutPower(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
	t.Logf("%d writes acknowledged over %d power cuts", acknowledged, cuts)
}

// cutPower cuts the power of one cluster several times and returns how many writes
// it acknowledged.
func cutPower(t *testing.T, random *rand.Rand) int {
	c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Timing.SnapshotBytes = 20_000 })
	defer c.Close()
	var mu sync.Mutex
	written := map[string]bool{}
	for cut := range cutsPerCluster {
		ctx, cancel := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		for w := range c.Size() {
			store := c.Store(w)
			writing.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					key := fmt.Sprintf("/k/%d/%d/%d", cut, w, i)
					if _, err := store.Propose(ctx, put(key, "v")); err != nil {
						return // its server is down
					}
					mu.Lock()
					written[key] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(random.IntN(400_000)) * time.Microsecond)
		victims := []int{random.IntN(c.Size())}
		if random.IntN(3) == 0 {
			victims = []int{0, 1, 2}
		}
		for _, i := range victims {
			c.Crash(i)
		}
		cancel()
		writing.Wait()
		for _, i := range victims {
			c.Restart(i)
		}
		c.Leader()
	}
	root, err := c.Store(0).ReadIndex(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key := range written {
		if _, ok := root.Get(key); !ok {
			t.Errorf("%s was acknowledged and is lost", key)
		}
	}
	return len(written)
}
