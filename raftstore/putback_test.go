package raftstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// TestCommittedEntriesAreNotCleared: one of three was away, the other's disk was put back
// to an earlier state, and the two elect a leader that lacks what was acknowledged. The
// server that has it must not throw it away.
func TestCommittedEntriesAreNotCleared(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) { committedEntriesAreNotCleared(t, c, end) })
		})
	}
}

func committedEntriesAreNotCleared(t *testing.T, c *raftstoretest.Cluster, end func(*raftstoretest.Cluster, int)) {
	keeps := c.Leader()
	away, back := others(keeps)[0], others(keeps)[1]
	mustPut(t, c.Store(keeps), "/before", "v")
	synctest.Wait()
	earlier := c.CopyDisk(back)
	c.Stop(away)
	mustPut(t, c.Store(keeps), "/acknowledged", "v")
	time.Sleep(2 * time.Second) // the mark follows within a second
	end(c, keeps)
	end(c, back)
	c.PutBack(back, earlier)
	c.Restart(away)
	c.Restart(back)
	mustPut(t, c.Store(c.Leader(away, back)), "/another", "v")
	c.Restart(keeps)
	time.Sleep(10 * time.Second)
	if err := c.Fatal(keeps); !errors.Is(err, raftstore.ErrCommittedLost) {
		t.Fatalf("the server that has it goes on: %v", err)
	}
	if _, ok := c.Store(keeps).Root().Get("/another"); ok {
		t.Error("it took the others' entry")
	}
	c.Forgive(keeps)
	c.Stop(keeps)
	// It says so again, and has the entry for whoever recovers from it.
	c.Restart(keeps)
	time.Sleep(10 * time.Second)
	if err := c.Fatal(keeps); !errors.Is(err, raftstore.ErrCommittedLost) {
		t.Errorf("started again it goes on: %v", err)
	}
	c.Forgive(keeps)
	c.Stop(keeps) // as its process would
}

// TestATermThatBeganTwice: the leader crashed, and a term of the two others began; one of them
// stopped, and the other's disk was put back to before that term. It and the former leader
// begin the same term again, with other entries at the same indexes, and raft cannot tell
// them apart. The server that stopped finds out itself: by the leader's next entry, if its log is longer than the leader's,
// else by the comparison that it asks for, or because it has entries that it is sent.
func TestATermThatBeganTwice(t *testing.T) {
	for _, length := range []struct{ had, have int }{{1, 50}, {10, 10}, {50, 1}, {60, 1}} {
		t.Run(fmt.Sprintf("%d writes, then %d", length.had, length.have), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { termThatBeganTwice(t, length.had, length.have) })
		})
	}
}

func termThatBeganTwice(t *testing.T, had, have int) {
	former := -1
	c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
		if former >= 0 && cfg.Name != fmt.Sprintf("server-%d", former+1) {
			cfg.Timing.HeartbeatTimeout, cfg.Timing.ElectionTimeout = 5*time.Second, 5*time.Second
		}
	})
	defer c.Close()
	leader := c.Leader()
	keeps, back := others(leader)[0], others(leader)[1]
	mustPut(t, c.Store(leader), "/before", "v")
	synctest.Wait()
	earlier := c.CopyDisk(back)
	c.Crash(leader)
	for i := range had {
		mustPut(t, c.Store(c.Leader(keeps, back)), fmt.Sprint("/acknowledged/", i), "v")
	}
	time.Sleep(2 * time.Second) // the mark follows within a second
	term := c.Store(keeps).Status().Term
	c.Stop(keeps)
	c.Crash(back)
	c.PutBack(back, earlier)
	former = leader // it alone asks for votes soon
	c.Restart(leader)
	c.Restart(back)
	for i := range have {
		mustPut(t, c.Store(c.Leader(leader)), fmt.Sprint("/another/", i), "v")
	}
	if again := c.Store(leader).Status().Term; again != term {
		t.Fatalf("the term is %d, and was %d: nothing is shown", again, term)
	}
	c.Restart(keeps)
	if had > have { // the leader has nobody else, and it must not acknowledge what it has not
		for range 1000 {
			if c.Store(keeps).Status().LeaderID != "" {
				break
			}
			time.Sleep(time.Millisecond)
		}
		c.Crash(back)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Store(leader).Propose(ctx, put("/false", "v")); err == nil {
			t.Error("a write was acknowledged that only the leader has")
		}
		c.Restart(back)
	}
	time.Sleep(4 * time.Second)
	if err := c.Fatal(keeps); !errors.Is(err, raftstore.ErrCommittedLost) && (had > have || !errors.Is(err, raftstore.ErrDiverged)) {
		t.Errorf("it goes on: %v", err)
	}
	c.Forgive(keeps)
	c.Stop(keeps) // as its process would
	mustPut(t, c.Store(c.Leader(leader, back)), "/later", "v")
}

// ends are how a server may end before its disk is put back.
var ends = map[string]func(*raftstoretest.Cluster, int){"stopped": (*raftstoretest.Cluster).Stop, "killed": (*raftstoretest.Cluster).Crash}

// TestAServerPutBackComesBackUnderANewID: the others go on meanwhile, and know what it had.
func TestAServerPutBackComesBackUnderANewID(t *testing.T) {
	for how, end := range ends {
		for _, servers := range []int{3, 5} {
			for _, leads := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d servers, leader %v", how, servers, leads), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := raftstoretest.StartCluster(t, servers, nil)
						defer c.Close()
						victim := c.Leader()
						if !leads {
							victim = (victim + 1) % servers
						}
						mustPut(t, c.Store(victim), "/before", "v")
						synctest.Wait()
						earlier := c.CopyDisk(victim)
						mustPut(t, c.Store(victim), "/acknowledged", "v")
						time.Sleep(time.Second)
						end(c, victim)
						c.PutBack(victim, earlier)
						c.Leader()
						stopsAndComesBack(t, c, victim)
					})
				})
			}
		}
	}
}

// stopsAndComesBack starts a server whose disk was put back, twice: it finds so, and then it
// is a member under a new id.
func stopsAndComesBack(t *testing.T, c *raftstoretest.Cluster, victim int) {
	t.Helper()
	c.Restart(victim)
	time.Sleep(time.Second)
	wantStopped(t, c, map[int]error{victim: raftstore.ErrDiskWentBack})
	c.Stop(victim) // as its process would
	c.Restart(victim)
	if id := idOf(t, settled(t, c, c.Size()), c.Name(victim)); !strings.HasPrefix(id, c.Name(victim)+"+") {
		t.Errorf("it is back as %q", id)
	}
	if got := mustRead(t, c.Store(victim), "/acknowledged"); got != "v" {
		t.Errorf("it reads %q", got)
	}
}

// hastily starts servers of which those named, from when it is called, ask for votes early.
func hastily(t *testing.T, servers int) (c *raftstoretest.Cluster, hasten func(hasty ...int)) {
	hurry := map[string]bool{}
	c = raftstoretest.StartCluster(t, servers, func(cfg *raftstore.Config) {
		if hurry[cfg.Name] {
			cfg.Timing.HeartbeatTimeout, cfg.Timing.ElectionTimeout = 60*time.Millisecond, 60*time.Millisecond
		}
	})
	return c, func(hasty ...int) {
		for _, i := range hasty {
			hurry[c.Name(i)] = true
		}
	}
}

// haveAndAway names the leader and the others that make a majority with it, and the rest.
func haveAndAway(c *raftstoretest.Cluster) (have, away []int) {
	leader := c.Leader()
	for i := range c.Size() {
		if j := (leader + i) % c.Size(); i <= c.Size()/2 {
			have = append(have, j)
		} else {
			away = append(away, j)
		}
	}
	return have, away
}

// TestAServerPutBackElectsNobody: it and the leader alone have acknowledged an entry, and it
// is started, its disk put back, together with those that were away. They would be most,
// and they are the first to ask it for a vote. The leader answers a little later.
func TestAServerPutBackElectsNobody(t *testing.T) {
	for how, end := range ends {
		for _, servers := range []int{3, 5} {
			t.Run(fmt.Sprintf("%s, %d servers", how, servers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, hasten := hastily(t, servers)
					defer c.Close()
					have, away := haveAndAway(c)
					leader, victim, crash := have[0], have[1], have[2:]
					hasten(away...)
					mustPut(t, c.Store(leader), "/before", "v")
					synctest.Wait()
					earlier := c.CopyDisk(victim)
					for _, i := range away {
						c.Stop(i)
					}
					mustPut(t, c.Store(leader), "/acknowledged", "v")
					end(c, victim)
					c.PutBack(victim, earlier)
					for _, i := range crash {
						c.Crash(i)
					}
					time.Sleep(5 * time.Second) // nobody leads
					c.Hold(leader, victim)
					for _, i := range away {
						c.Restart(i)
					}
					c.Restart(victim)
					time.Sleep(400 * time.Millisecond)
					c.Release(leader, victim)
					time.Sleep(5 * time.Second)
					wantStopped(t, c, map[int]error{victim: raftstore.ErrDiskWentBack})
					c.Stop(victim)
					for _, i := range crash {
						c.Restart(i)
					}
					if got := mustRead(t, c.Store(away[0]), "/acknowledged"); got != "v" {
						t.Fatalf("the others read %q", got)
					}
					c.Restart(victim)
					settled(t, c, servers)
					if got := mustRead(t, c.Store(victim), "/acknowledged"); got != "v" {
						t.Errorf("it reads %q", got)
					}
				})
			})
		}
	}
}

// TestAServerPutBackThatVotedGoesOn: who knows better was cut off until a leader was elected
// with its vote. If it stopped now nobody could write.
func TestAServerPutBackThatVotedGoesOn(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		keeps := c.Leader()
		away, victim := others(keeps)[0], others(keeps)[1]
		mustPut(t, c.Store(keeps), "/before", "v")
		synctest.Wait()
		earlier := c.CopyDisk(victim)
		c.Stop(away)
		for i := range 50 {
			mustPut(t, c.Store(keeps), fmt.Sprint("/acknowledged/", i), "v")
		}
		c.Crash(victim)
		time.Sleep(2 * time.Second)
		c.Isolate(keeps)
		c.PutBack(victim, earlier)
		c.Restart(away)
		c.Restart(victim)
		leader := c.Leader(away, victim)
		c.Heal()
		time.Sleep(10 * time.Second)
		wantStopped(t, c, map[int]error{keeps: raftstore.ErrCommittedLost})
		mustPut(t, c.Store(leader), "/another", "v")
		if got := mustRead(t, c.Store(victim), "/another"); got != "v" {
			t.Errorf("it reads %q", got)
		}
		c.Stop(keeps) // as its process would
	})
}

// TestAcknowledgedEntriesMayGo: a follower acknowledged what was never committed, and the
// next leader had it deleted. The leader of that time does not take its disk for one that
// was put back, however far the others have come.
func TestAcknowledgedEntriesMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 5, func(cfg *raftstore.Config) { cfg.Timing.MaxAppendEntries = 1 })
		defer c.Close()
		leader := c.Leader()
		follower := (leader + 1) % 5
		most := []int{(leader + 2) % 5, (leader + 3) % 5, (leader + 4) % 5}
		mustPut(t, c.Store(leader), "/before", "v")
		for _, i := range most {
			for _, j := range []int{leader, follower} {
				c.Cut(i, j)
				c.Cut(j, i)
			}
		}
		proposeLarge(t, c.Store(leader))
		had := c.Store(follower).Status().LastIndex
		c.Isolate(leader)
		mustPut(t, c.Store(c.Leader(most...)), "/next", "v")
		for _, i := range most {
			c.Mend(i, follower)
		}
		for range 1000 { // until the next leader has begun to give it its own entries
			if c.Store(follower).Status().LastIndex < had {
				break
			}
			time.Sleep(time.Millisecond)
		}
		c.Crash(follower)
		for i := range 50 {
			mustPut(t, c.Store(most[0]), fmt.Sprint("/later/", i), "v")
		}
		c.Heal()
		mustRead(t, c.Store(leader), "/later/49")
		c.Restart(follower)
		if last := c.Store(follower).Status().LastIndex; last >= had {
			t.Fatalf("its log ends at %d, it ended at %d", last, had)
		}
		time.Sleep(5 * time.Second)
		wantStopped(t, c, nil)
		if got := mustRead(t, c.Store(follower), "/later/49"); got != "v" {
			t.Errorf("it reads %q", got)
		}
	})
}

// proposeLarge proposes much at once to a leader that cannot commit, as several entries, and
// gives up.
func proposeLarge(t *testing.T, s *raftstore.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var writers sync.WaitGroup
	value := strings.Repeat("x", 100<<10)
	for i := range 300 {
		writers.Go(func() { _, _ = s.Propose(ctx, put(fmt.Sprint("/never/", i), value)) })
	}
	writers.Wait()
}

// TestASilentServerDelaysNoElection: two of three start again, and the third may know
// something of them, but does not answer.
func TestASilentServerDelaysNoElection(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		silent := c.Leader()
		mustPut(t, c.Store(silent), "/k", "v")
		c.Isolate(silent)
		for _, i := range others(silent) {
			c.Crash(i)
			c.Restart(i)
		}
		begun := time.Now()
		c.Leader(others(silent)...)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("no leader for %v", took)
		}
	})
}
