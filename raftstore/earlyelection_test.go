package raftstore_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/forward"
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

// asking calls one server, whatever the network does.
func asking(c *raftstoretest.Cluster, voter int) *forward.Client {
	_, handler := c.Store(voter).Handler()
	return forward.NewClient(func(string, string) (*http.Client, string) {
		return &http.Client{Transport: direct{handler}}, "http://voter"
	})
}

// TestNobodyStandsBesideTheHeir: a leader handed over and ended, and the third server misses it before the heir has reached
// it. The heir says that it stands already.
func TestNobodyStandsBesideTheHeir(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		time.Sleep(time.Second)
		followers := others(leader)
		led := forward.Led{Leader: c.Name(leader), Term: c.Store(leader).Leadership().Term}
		holdAll := func(hold func(from, to int)) {
			for i, from := range followers {
				hold(from, leader)
				hold(from, followers[1-i])
			}
		}
		holdAll(c.Hold)
		for _, i := range followers {
			c.Stall(i) // whoever follows the heir's leadership looks before the next term is on its disk
		}
		handing := make(chan struct{})
		go func() {
			defer close(handing)
			_ = c.Store(leader).TransferLeadership(t.Context()) // it may not hear the heir's answer
		}()
		time.Sleep(50 * time.Millisecond)
		for _, i := range followers {
			c.Resume(i)
		}
		time.Sleep(50 * time.Millisecond)
		heirs := 0
		for _, i := range followers {
			if c.Store(i).Leadership().LeaderID != "" {
				continue // it was not told to stand
			}
			heirs++
			c.Refuse(i, leader)
			if v, err := asking(c, i).LeaderGone(t.Context(), forward.Peer{}, led); err != nil || v.Gone {
				t.Errorf("the heir, a candidate of the next term, says that the leader is gone: %v, %v", v.Gone, err)
			}
			c.Allow(i, leader)
		}
		if heirs != 1 {
			t.Errorf("%d stand, want the heir", heirs)
		}
		holdAll(c.Release)
		<-handing
	})
}

// TestNobodyJudgesTheLeaderOfAnotherTerm: a voter that finds the leader gone says so of
// that leader in its term, and of no other.
func TestNobodyJudgesTheLeaderOfAnotherTerm(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		voter := others(leader)[0]
		c.Refuse(voter, leader)
		client := asking(c, voter)
		id, term := c.Store(voter).Leadership().LeaderID, c.Store(voter).Leadership().Term
		for led, gone := range map[forward.Led]bool{
			{Leader: id, Term: term}:                        true,
			{Leader: id, Term: term - 1}:                    false,
			{Leader: id, Term: term + 1}:                    false,
			{Leader: c.Name(others(leader)[1]), Term: term}: false,
		} {
			v, err := client.LeaderGone(t.Context(), forward.Peer{}, led)
			if err != nil || v.Gone != gone {
				t.Errorf("%+v is gone: %v, %v, want %v", led, v.Gone, err, gone)
			}
		}
		c.Allow(voter, leader)
	})
}

// TestALeaderThatStepsDownStandsAgain: it hears nobody for a while, as without a processor;
// its followers have noticed nothing.
func TestALeaderThatStepsDownStandsAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		term := c.Store(leader).Leadership().Term
		time.Sleep(time.Second)
		for _, i := range others(leader) {
			c.Hold(i, leader)
		}
		deaf := time.Now()
		for c.Store(leader).Leadership().Leader {
			time.Sleep(time.Millisecond)
		}
		if lease := time.Since(deaf); lease < 400*time.Millisecond {
			t.Errorf("it stepped down after %v, before any follower could have missed it", lease)
		}
		for _, i := range others(leader) {
			c.Release(i, leader)
		}
		heard := time.Now()
		next := c.Leader()
		if gap := time.Since(heard); next != leader || gap > atOnce {
			t.Errorf("server %d leads after %v, want %d at once", next, gap, leader)
		}
		if now := c.Store(leader).Status(); now.Term != term+1 || now.StepDowns != 1 {
			t.Errorf("term %d after term %d, stepped down %d times", now.Term, term, now.StepDowns)
		}
		mustPut(t, c.Store(others(leader)[0]), "/k", "again")
		if err := c.Store(leader).TransferLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.Leader(others(leader)...); c.Store(leader).Status().StepDowns != 1 {
			t.Error("handing the leadership over was counted too")
		}
	})
}

// TestALeaderLeavesTheTermToItsHeir: a leader that hands over under load hears of the later
// term from whoever voted there, often before the heir calls it.
func TestALeaderLeavesTheTermToItsHeir(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		for turn := range 40 {
			leader := c.Leader()
			store, to := c.Store(leader), others(leader)[turn%2]
			before := store.Status()
			for i := range 8 {
				go func() { _, _ = store.Propose(t.Context(), put(fmt.Sprintf("/k/%d", i), "v")) }()
			}
			if err := store.MoveLeadership(t.Context(), c.Name(to)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			after := c.Store(to).Status()
			if after.LeaderID != c.Name(to) || after.Term != before.Term+1 || store.Status().StepDowns != before.StepDowns {
				t.Fatalf("turn %d: %s leads in term %d after term %d, %d steps down", turn, after.LeaderID, after.Term, before.Term, store.Status().StepDowns)
			}
			if got := store.Status().Elections - before.Elections; got != 1 {
				t.Fatalf("turn %d: %d leaders are new", turn, got)
			}
		}
	})
}

// TestALeaderCutOffDeposesNobody: what it does when it steps down, and when it is back, does not
// end the term of its successor.
func TestALeaderCutOffDeposesNobody(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		old := c.Leader()
		mustPut(t, c.Store(old), "/k", "v")
		c.Isolate(old)
		next := c.Leader(others(old)...)
		time.Sleep(10 * time.Second)
		before := c.Store(next).Leadership()
		c.Heal()
		time.Sleep(5 * time.Second)
		if after := c.Store(next).Leadership(); !after.Leader || after.Term != before.Term {
			t.Errorf("led in term %d, and when the other was back: %+v", before.Term, after)
		}
		if downs := c.Store(old).Status().StepDowns; downs != 1 {
			t.Errorf("stepped down %d times", downs)
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

func TestTheFirstFounderNeedNotBeWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		begin := time.Now()
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Timing.HeartbeatTimeout, cfg.Timing.ElectionTimeout, cfg.Timing.FirstStands = patience, patience, true
		})
		defer c.Close()
		if c.Leader(); time.Since(begin) >= patience {
			t.Errorf("the first leader was there after %v", time.Since(begin))
		}
	})
}
