package raftstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// history is what clients saw while faults came and went.
type history struct {
	// acknowledged is the highest revision that any client was told.
	acknowledged atomic.Uint64

	mu sync.Mutex
	// owners tells which write was told each revision.
	owners   map[uint64]string
	counted  int
	unknown  int
	problems []string
	reads    int
}

func (h *history) problem(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, fmt.Sprintf(format, args...))
}

func (h *history) wrote(name string, revision uint64) {
	for {
		highest := h.acknowledged.Load()
		if revision <= highest || h.acknowledged.CompareAndSwap(highest, revision) {
			break
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, ok := h.owners[revision]; ok {
		h.problems = append(h.problems, fmt.Sprintf("revision %d was told %s and %s", revision, other, name))
	}
	h.owners[revision] = name
}

// client increments a shared counter through one server, by compare and swap on
// what a linearizable read gave.
func (h *history) client(ctx context.Context, name string, store func() *raftstore.Store) {
	for i := 0; ctx.Err() == nil; i++ {
		s := store()
		if s == nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		h.increment(ctx, s, fmt.Sprintf("%s-%d", name, i))
		time.Sleep(40 * time.Millisecond)
	}
}

func (h *history) increment(ctx context.Context, s *raftstore.Store, name string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	before := h.acknowledged.Load()
	root, err := s.ReadIndex(ctx)
	if err != nil {
		return
	}
	if root.Revision < before {
		h.problem("%s read revision %d after %d was acknowledged", name, root.Revision, before)
	}
	h.mu.Lock()
	h.reads++
	h.mu.Unlock()
	op := command.Op{Kind: command.Put, Key: "/counter", Value: []byte("1"), Precondition: command.Absent}
	if record, ok := root.Get("/counter"); ok {
		n, _ := strconv.Atoi(string(record.Value))
		op.Value, op.Precondition, op.Revision = []byte(strconv.Itoa(n+1)), command.AtRevision, record.ModRevision
	}
	result, err := s.Propose(ctx, command.Command{RequestID: name, Ops: []command.Op{op}})
	switch {
	case err == nil && result.Code == command.OK:
		h.wrote(name, result.Revision)
		h.mu.Lock()
		h.counted++
		h.mu.Unlock()
	case errors.Is(err, raftstore.ErrOutcomeUnknown):
		h.mu.Lock()
		h.unknown++
		h.mu.Unlock()
	}
}

// torment does one random thing to the cluster after another.
func torment(c *raftstoretest.Cluster, random *rand.Rand, until time.Time) {
	for time.Now().Before(until) {
		i := random.IntN(c.Size())
		switch random.IntN(5) {
		case 0:
			c.Isolate(i)
		case 1:
			c.Cut(i, (i+1)%c.Size())
		case 2:
			c.Crash(i)
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			c.Restart(i)
		case 3:
			if s := c.Store(i); s.Leadership().Leader {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				_ = s.TransferLeadership(ctx) // it may well fail now
				cancel()
			}
		case 4:
			c.Stop(i)
			c.Restart(i)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		c.Heal()
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	}
}

func TestHistoriesUnderFaults(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkHistory(t, uint64(seed)) })
		})
	}
}

func checkHistory(t *testing.T, seed uint64) {
	c := raftstoretest.StartCluster(t, 3, nil)
	defer c.Close()
	c.Leader()
	h := &history{owners: map[uint64]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			h.client(ctx, fmt.Sprint("client", i), func() *raftstore.Store { return c.Store(i % 3) })
		})
	}
	torment(c, rand.New(rand.NewPCG(seed, seed)), time.Now().Add(12*time.Second))
	c.Heal()
	time.Sleep(5 * time.Second)
	cancel()
	clients.Wait()
	h.judge(t, c)
}

// judge compares what clients were told with what the replicas hold.
func (h *history) judge(t *testing.T, c *raftstoretest.Cluster) {
	t.Helper()
	for _, p := range h.problems {
		t.Error(p)
	}
	if h.counted < 100 || h.reads < 200 {
		t.Errorf("too little happened: %d writes, %d reads", h.counted, h.reads)
	}
	var hashes [3][16]byte
	for i := range c.Size() {
		root, err := c.Store(i).ReadIndex(t.Context())
		if err != nil {
			for j := range c.Size() {
				t.Logf("server %d: %+v, stopped for %v", j, c.Store(j).Status(), c.Fatal(j))
			}
			t.Fatalf("server %d does not serve after the faults: %v", i, err)
		}
		record, _ := root.Get("/counter")
		if n, _ := strconv.Atoi(string(record.Value)); n < h.counted || n > h.counted+h.unknown {
			t.Errorf("server %d counts %d; acknowledged %d, unknown %d", i, n, h.counted, h.unknown)
		}
		hashes[i] = c.StateHash(i)
	}
	if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
		t.Errorf("replicas differ: %x", hashes)
	}
	t.Logf("%d acknowledged, %d unknown, %d reads", h.counted, h.unknown, h.reads)
}

func TestLaggingFollowerGetsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Timing.SnapshotBytes = 60_000 })
		defer c.Close()
		leader := c.Leader()
		away := others(leader)[0]
		mustPut(t, c.Store(leader), "/first", "v")
		w, err := c.Store(away).Watch("/k/", c.Store(away).Root().Revision)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		c.Isolate(away)
		for i := range 600 {
			mustPut(t, c.Store(leader), fmt.Sprintf("/k/%03d", i), string(make([]byte, 500)))
		}
		if c.Store(leader).Status().SnapshotIndex == 0 {
			t.Fatal("the leader took no snapshot")
		}
		c.Heal()
		if got := mustRead(t, c.Store(away), "/k/599"); len(got) != 500 {
			t.Errorf("read %d bytes", len(got))
		}
		if c.Store(away).Status().SnapshotIndex == 0 {
			t.Error("the follower caught up without a snapshot: the test misses its point")
		}
		// The snapshot carries the history, so the watch goes on over the gap.
		seen := 0
		for seen < 600 {
			events, err := w.Next(t.Context())
			if err != nil {
				t.Fatalf("watch after %d events: %v", seen, err)
			}
			for _, e := range events {
				if want := fmt.Sprintf("/k/%03d", seen); e.Key != want {
					t.Fatalf("event %d is of %s", seen, e.Key)
				}
				seen++
			}
		}
		// What it was sent stands behind a log that ended long before.
		mustPut(t, c.Store(leader), "/k/600", "v")
		mustRead(t, c.Store(away), "/k/600")
		c.Crash(away)
		c.Restart(away)
		mustRead(t, c.Store(away), "/k/600")
	})
}

func TestStatesAreComparedThroughTheLog(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		var writing sync.WaitGroup
		for w := range 64 {
			writing.Go(func() {
				for i := range 80 {
					if _, err := c.Store(leader).Propose(t.Context(), put(fmt.Sprintf("/k/%d/%d", w, i), "v")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writing.Wait()
		time.Sleep(time.Second)
		for i := range c.Size() {
			if root := c.Store(i).Root(); root.Revision != 64*80 {
				t.Errorf("server %d at revision %d", i, root.Revision)
			}
		}
	})
}

// remaining returns the servers that are up, beside one.
func remaining(c *raftstoretest.Cluster, gone int) []int {
	var up []int
	for i := range c.Size() {
		if i != gone && c.Store(i) != nil {
			up = append(up, i)
		}
	}
	return up
}

func TestMembershipChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		leader := c.Leader()
		follower := others(leader)[0]
		mustPut(t, c.Store(leader), "/k", "v")
		joined := c.Join("server-4")
		if err := c.Store(follower).AddMember(t.Context(), "server-4", "server-4"); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, c.Store(joined), "/k"); got != "v" {
			t.Errorf("new server reads %q", got)
		}
		voters := 0
		for _, s := range c.Store(leader).Status().Servers {
			if s.Voter {
				voters++
			}
		}
		if voters != 4 {
			t.Errorf("%d voters", voters)
		}
		c.Crash(others(leader)[1])
		time.Sleep(5 * time.Second)
		gone := c.Leader()
		if err := c.Store(gone).RemoveMember(t.Context(), c.Name(gone)); err != nil {
			t.Errorf("2 of 3 remain: %v", err)
		}
		left := c.Store(c.Leader(remaining(c, gone)...))
		if servers := left.Status().Servers; len(servers) != 3 {
			t.Errorf("members after the removal: %+v", servers)
		}
		dead := c.Name(others(leader)[1])
		for _, s := range left.Status().Servers {
			name := raftstore.MemberName(s.ID)
			if name == dead {
				continue
			}
			if err := left.RemoveMember(t.Context(), name); !errors.Is(err, raftstore.ErrUnsafe) {
				t.Errorf("removed %s, one of two live voters of three: %v", name, err)
			}
		}
	})
}
