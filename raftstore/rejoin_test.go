package raftstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// settleLimit is how long a test waits in fake time for a membership to settle.
const settleLimit = 60 * time.Second

// settled waits until every server that is up votes, under the ids wanted by name,
// and nobody else is a member.
func settled(t *testing.T, c *raftstoretest.Cluster, voters int) []raftstore.Member {
	t.Helper()
	var members []raftstore.Member
	for deadline := time.Now().Add(settleLimit); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		members = c.Store(c.Leader()).Members(t.Context())
		reachable := 0
		for _, m := range members {
			if m.Voter && m.Reachable && m.Lag == 0 {
				reachable++
			}
		}
		if reachable == voters && len(members) == voters {
			return members
		}
	}
	t.Fatalf("not %d voters: %+v", voters, members)
	return nil
}

// idOf returns the member id of a name.
func idOf(t *testing.T, members []raftstore.Member, name string) string {
	t.Helper()
	for _, m := range members {
		if m.Name == name {
			return m.ID
		}
	}
	t.Fatalf("%s is no member: %+v", name, members)
	return ""
}

// loseDisk does harm to the disk of a server that is down.
type loseDisk func(*raftstoretest.Cluster, int)

func TestServerThatLostItsDataRejoinsUnderANewID(t *testing.T) {
	for name, harm := range map[string]loseDisk{"wiped": (*raftstoretest.Cluster).Wipe, "corrupt": (*raftstoretest.Cluster).Corrupt} {
		for _, leads := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/leader=%v", name, leads), func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) { rejoins(t, c, harm, leads) })
			})
		}
	}
}

func rejoins(t *testing.T, c *raftstoretest.Cluster, harm loseDisk, leads bool) {
	victim := c.Leader()
	if !leads {
		victim = others(victim)[0]
	}
	for i := range 20 {
		mustPut(t, c.Store(victim), fmt.Sprintf("/k/%d", i), "v")
	}
	c.Crash(victim)
	harm(c, victim)
	mustPut(t, c.Store(others(victim)[0]), "/while-away", "v")
	c.Restart(victim)
	members := settled(t, c, 3)
	if id := idOf(t, members, c.Name(victim)); !strings.HasPrefix(id, c.Name(victim)+"+") {
		t.Errorf("it is back as %q", id)
	}
	if got := mustRead(t, c.Store(victim), "/while-away"); got != "v" {
		t.Errorf("it reads %q", got)
	}
	// It votes: without one of the others the cluster serves.
	c.Crash(others(victim)[0])
	mustPut(t, c.Store(victim), "/after", "v")
	c.Restart(others(victim)[0])
	// And its data counts from now on.
	c.Crash(victim)
	c.Restart(victim)
	settled(t, c, 3)
	if c.StateHash(0) != c.StateHash(1) || c.StateHash(1) != c.StateHash(2) {
		t.Error("replicas differ")
	}
}

// TestFreshFounderDoesNotFoundASecondCluster: an emptied founder that reaches
// nobody waits, and one that reaches a majority joins it.
func TestFreshFounderDoesNotFoundASecondCluster(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		victim := others(c.Leader())[0]
		mustPut(t, c.Store(victim), "/k", "v")
		c.Crash(victim)
		c.Wipe(victim)
		c.Isolate(victim)
		c.Restart(victim)
		time.Sleep(20 * time.Second)
		if s := c.Store(victim).Status(); s.Phase != "fresh" || s.LeaderID != "" || s.Term != 0 {
			t.Errorf("cut off it became %+v", s)
		}
		c.Heal()
		settled(t, c, 3)
	})
}

func TestFoundersWaitForAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.NewCluster(t, 3, nil)
		defer c.Close()
		c.Restart(0)
		time.Sleep(10 * time.Second)
		if s := c.Store(0).Status(); s.Phase != "fresh" {
			t.Errorf("one of three founded alone: %+v", s)
		}
		c.Restart(1)
		mustPut(t, c.Store(c.Leader(0, 1)), "/k", "v")
		time.Sleep(10 * time.Second)
		c.Restart(2)
		members := settled(t, c, 3)
		if id := idOf(t, members, "server-3"); id == "server-3" {
			t.Error("the late founder votes under an id that may have voted")
		}
		if got := mustRead(t, c.Store(2), "/k"); got != "v" {
			t.Errorf("the late founder reads %q", got)
		}
	})
}

// TestFoundersMayCrashWhileFounding cuts the power of each founder at some moment
// of the founding; nobody needs a new id for that.
func TestFoundersMayCrashWhileFounding(t *testing.T) {
	for moment := range 12 {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, 3, nil)
				defer c.Close()
				time.Sleep(time.Duration(moment*moment) * 4 * time.Millisecond)
				victim := moment % 3
				c.Crash(victim)
				time.Sleep(time.Second)
				c.Restart(victim)
				for _, m := range settled(t, c, 3) {
					if m.ID != m.Name {
						t.Errorf("%s is back as %s", m.Name, m.ID)
					}
				}
				mustPut(t, c.Store(victim), "/k", "v")
			})
		})
	}
}

func TestAllAddressesChangeAtOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		for i := range c.Size() {
			c.Stop(i)
		}
		for i := range c.Size() {
			c.Move(i, "moved-"+c.Name(i))
		}
		for i := range c.Size() {
			c.Restart(i)
		}
		var members []raftstore.Member
		for range 100 {
			members = settled(t, c, 3)
			if members[0].Address == "moved-server-1" && members[1].Address == "moved-server-2" && members[2].Address == "moved-server-3" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, m := range members {
			if m.Address != "moved-"+m.Name || m.ID != m.Name {
				t.Errorf("stored: %+v", m)
			}
		}
		if got := mustRead(t, c.Store(0), "/k"); got != "v" {
			t.Errorf("read %q", got)
		}
	})
}

// TestANewServerTakesNobodysPlace: one that has never been a member, under the name of one that is down, does not pass for that one with a
// new disk. Under a name of its own it is added.
func TestANewServerTakesNobodysPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.New = strings.HasPrefix(cfg.AdvertiseAddress, "new") })
		defer c.Close()
		down := others(c.Leader())[0]
		c.Crash(down)
		twin := c.JoinAt(c.Name(down), "new-twin")
		time.Sleep(settleLimit)
		if s := c.Store(twin).Status(); len(s.Servers) != 0 {
			t.Errorf("it came in: %+v", s.Servers)
		}
		if err := c.Store(twin).AddMember(t.Context(), c.Name(down), "new-twin"); !errors.Is(err, raftstore.ErrNameTaken) {
			t.Errorf("it asks to be added: %v", err)
		}
		c.Stop(twin)
		c.Restart(down)
		other := c.JoinAt("server-4", "new")
		if err := c.Store(other).AddMember(t.Context(), "server-4", "new"); err != nil {
			t.Error(err)
		}
		settled(t, c, 4)
	})
}

// TestNobodyTakesTheNameOfOneThatJoins: while a server is taken in, another one cannot be added under its name.
func TestNobodyTakesTheNameOfOneThatJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.New = strings.HasPrefix(cfg.AdvertiseAddress, "new") })
		defer c.Close()
		leader := c.Store(c.Leader())
		first := c.JoinAt("server-4", "new-first")
		c.JoinAt("server-4", "new-second")
		ctx, interrupt := context.WithCancel(t.Context())
		var adding sync.WaitGroup
		adding.Go(func() {
			if err := leader.AddMember(ctx, "server-4", "new-first"); err == nil {
				t.Error("it was not interrupted")
			}
		})
		for len(leader.Servers()) < 4 {
			time.Sleep(time.Millisecond)
		}
		interrupt()
		adding.Wait()
		if err := leader.AddMember(t.Context(), "server-4", "new-second"); !errors.Is(err, raftstore.ErrNameTaken) {
			t.Errorf("the second is added: %v", err)
		}
		if err := leader.AddMember(t.Context(), "server-4", "new-first"); err != nil {
			t.Errorf("the first is added again: %v", err)
		}
		if !slices.ContainsFunc(leader.Servers(), func(s raftstore.ServerStatus) bool {
			return s.ID == c.Store(first).Status().ID && s.Voter
		}) {
			t.Errorf("members: %+v", leader.Servers())
		}
	})
}

// TestReplaceUnderLoad moves a server to another address while clients write and
// the leader crashes in the middle.
func TestReplaceUnderLoad(t *testing.T) {
	for _, which := range []string{"follower", "leader"} {
		t.Run(which, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, 3, nil) // a quiet one is caught up with less often
				defer c.Close()
				leader := c.Leader()
				moving := others(leader)[0]
				if which == "leader" {
					moving = leader
				}
				replaceUnderLoad(t, c, leader, moving)
			})
		})
	}
}

func replaceUnderLoad(t *testing.T, c *raftstoretest.Cluster, leader, moving int) {
	writer := c.Store(3 - leader - others(leader)[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	written := make(chan int, 1)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if _, err := writer.Propose(context.Background(), put(fmt.Sprintf("/load/%d", n), "v")); err != nil {
				t.Errorf("write %d: %v", n, err)
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		written <- n
	}()
	time.Sleep(time.Second)
	elsewhere := c.JoinAt(c.Name(moving), "elsewhere")
	time.Sleep(time.Second)
	if s := c.Store(elsewhere).Status(); len(s.Servers) != 0 {
		t.Errorf("a second server of the name came in without an order: %+v", s.Servers)
	}
	ordered := make(chan error, 1)
	go func() { ordered <- writer.ReplaceMember(t.Context(), c.Name(moving), "elsewhere") }()
	time.Sleep(8 * time.Millisecond)
	c.Crash(leader)
	time.Sleep(3 * time.Second)
	if leader != moving {
		c.Restart(leader)
	}
	// While the crashed leader is away the old server cannot go; the new one asks on.
	if err := <-ordered; err != nil && !errors.Is(err, raftstore.ErrUnsafe) {
		t.Error(err)
	}
	if leader != moving {
		c.Stop(moving) // its membership is over
	}
	members := settled(t, c, 3)
	cancel()
	n := <-written
	for _, m := range members {
		if m.Name == c.Name(moving) && (m.Address != "elsewhere" || m.ID == m.Name) {
			t.Errorf("it is still %+v", m)
		}
	}
	for i := range n {
		if got := mustRead(t, c.Store(elsewhere), fmt.Sprintf("/load/%d", i)); got != "v" {
			t.Fatalf("write %d of %d is lost", i, n)
		}
	}
}

func TestLeadershipMovesToTheServerNamed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		to := others(leader)[1]
		mustPut(t, c.Store(others(leader)[0]), "/k", "v") // it knows the leader now
		if err := c.Store(others(leader)[0]).MoveLeadership(t.Context(), c.Name(to)); err != nil {
			t.Fatal(err)
		}
		if id := c.Store(others(leader)[0]).Leadership().LeaderID; id != c.Name(to) {
			t.Errorf("%s leads, want %s", id, c.Name(to))
		}
	})
}
