package session

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// expect looks at a node's state after some time.
func (h *host) expect(t *testing.T, after time.Duration, node string, want State) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	if got := h.Node(node); got.State != want {
		t.Errorf("%s sees %s as %v, want %v", h.name, node, got.State, want)
	}
}

// throughout looks again and again.
func (h *host) throughout(t *testing.T, d time.Duration, node string, want State) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); {
		h.expect(t, 50*time.Millisecond, node, want)
	}
}

// notLost looks again and again: whatever is overdue, it is not given up.
func (h *host) notLost(t *testing.T, d time.Duration, node string) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); time.Sleep(50 * time.Millisecond) {
		synctest.Wait()
		if got := h.Node(node).State; got != Alive && got != Quiet {
			t.Errorf("%s sees %s as %v", h.name, node, got)
		}
	}
}

func TestGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s := n.server("s1", "s1")
		stop := n.agent("n1", "s1")
		s.expect(t, time.Second, "n1", Alive)
		s.throughout(t, time.Minute, "n1", Alive)
		stop()
		s.expect(t, 0, "n1", ClosedCleanly)
		s.expect(t, time.Minute, "n1", ClosedCleanly)
		n.agent("n1", "s1")
		s.expect(t, time.Second, "n1", Alive)
	})
}

func TestBrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s1, s2 := n.server("s1", "s1", "s2"), n.server("s2", "s1", "s2")
		n.agent("n1", "s1")
		s1.expect(t, time.Second, "n1", Alive)
		s2.expect(t, 0, "n1", Alive)
		n.mute("n1", "s1") // it cannot come back
		n.crash("n1")
		s1.throughout(t, 2*time.Second, "n1", Alive)
		s2.expect(t, 0, "n1", Alive)
		s1.expect(t, 1500*time.Millisecond, "n1", Lost)
		s2.expect(t, 0, "n1", Lost)
		if since := time.Since(s2.Node("n1").Since); since > time.Second {
			t.Errorf("lost since %v", since)
		}
	})
}

func TestCrashedAgentIsBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s := n.server("s1", "s1")
		n.agent("n1", "s1")
		s.expect(t, time.Second, "n1", Alive)
		n.crash("n1")
		s.throughout(t, 10*time.Second, "n1", Alive)
	})
}

func TestSilentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s := n.server("s1", "s1")
		n.agent("n1", "s1")
		s.expect(t, time.Second, "n1", Alive)
		n.mute("n1", "s1")
		s.expect(t, time.Second, "n1", Alive) // the last ping may be 3.3 s old
		s.notLost(t, 10500*time.Millisecond, "n1")
		since := s.Node("n1").Since
		s.expect(t, 4*time.Second, "n1", Lost)
		if !s.Node("n1").Since.Equal(since) {
			t.Errorf("lost since %v, quiet since %v", s.Node("n1").Since, since)
		}
	})
}

// noticed is when a server knows that it has lost its leader.
const noticed = 4 * time.Second

func TestFailover(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(n *network, holder *host)
	}{
		{"the server's process dies", func(_ *network, holder *host) { holder.kill() }},
		{"the server's machine falls silent", func(n *network, holder *host) {
			for _, other := range []string{"s1", "s2", "s3", "n1"} {
				n.mute(holder.name, other)
			}
		}},
		{"the server reaches no other server", func(n *network, holder *host) {
			for _, other := range []string{"s1", "s2", "s3"} {
				n.mute(holder.name, other)
			}
			time.AfterFunc(noticed, holder.lose)
		}},
		{"the server reaches all but the leader", func(n *network, holder *host) {
			leader := "s1"
			if holder.name == leader {
				leader = "s2"
			}
			n.mute(holder.name, leader)
			time.AfterFunc(noticed, holder.lose)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				servers := map[string]*host{}
				for _, name := range []string{"s1", "s2", "s3"} {
					servers[name] = n.server(name, "s1", "s2", "s3")
				}
				n.agent("n1", "s1", "s2", "s3")
				servers["s1"].expect(t, time.Second, "n1", Alive)
				for name, s := range servers {
					if _, holds := s.ownState("n1"); holds {
						c.fail(n, s)
						delete(servers, name)
						break
					}
				}
				for end := time.Now().Add(time.Minute); time.Now().Before(end) && !t.Failed(); {
					for _, s := range servers {
						s.notLost(t, 50*time.Millisecond, "n1")
					}
				}
				holders := 0
				for _, s := range servers {
					if p, ok := s.ownState("n1"); ok && p == open {
						holders++
					}
				}
				if holders != 1 {
					t.Errorf("%d of the other servers hold the session, want 1", holders)
				}
			})
		})
	}
}

func (t *Table) ownState(node string) (phase, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.own[node]
	return r.phase, ok
}

func TestServerAndItsAgentDieTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s1, s2 := n.server("s1", "s1", "s2"), n.server("s2", "s1", "s2")
		n.agent("n1", "s1")
		s2.expect(t, time.Second, "n1", Alive)
		n.mute("n1", "s1")
		s1.kill()
		s2.notLost(t, 11*time.Second, "n1")
		s2.expect(t, 8*time.Second, "n1", Lost)
	})
}

func TestRestartedServerLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s1, s2 := n.server("s1", "s1", "s2"), n.server("s2", "s1", "s2")
		n.agent("n1", "s2")
		stop := n.agent("n2", "s2")
		s1.expect(t, time.Second, "n1", Alive)
		stop()
		s1.kill()
		time.Sleep(time.Minute)
		s1 = n.server("s1", "s1", "s2")
		s1.expect(t, 2*time.Second, "n1", Alive)
		s1.expect(t, 0, "n2", ClosedCleanly)
		if since := time.Since(s1.Node("n2").Since); since < time.Minute || since > 65*time.Second {
			t.Errorf("closed since %v, want about a minute", since)
		}
		s2.expect(t, 0, "n1", Alive)
		if views := s2.Views(); len(views["s1"].Opinions) != 1 || views["s1"].Opinions[0].Node != "seen-by-s1" {
			t.Errorf("s2 knows these views: %v", views)
		}
	})
}

func TestStrangersHoldNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s := n.server("s1", "s1")
		n.agent("stranger", "s1")
		time.Sleep(5 * time.Second)
		if entries := s.Entries(); len(entries) != 0 {
			t.Errorf("sessions: %v", entries)
		}
	})
}

func TestEndedSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []string
		table := NewTable("s1", func(node string) { changes = append(changes, node) })
		r, err := table.open("n1", "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		table.end("n1", r, closed)
		time.Sleep(memory + time.Second)
		table.sweep(time.Now())
		if len(table.Entries()) != 0 || len(table.own) != 0 {
			t.Errorf("still known: %v", table.Entries())
		}
		if len(changes) != 3 {
			t.Errorf("changes: %v", changes)
		}
	})
}

func TestDigestOfStranger(t *testing.T) {
	stranger, s1 := NewTable("s9", nil), NewTable("s1", nil)
	s1.SetServers(Servers{Votes: true, Peers: []Peer{{Name: "s2", Voter: true}}})
	if err := s1.merge(stranger.digest(View{})); err == nil {
		t.Error("a digest of a server that is no peer was taken")
	}
}

// TestServerThatJoinedLater: its agents are known everywhere, it holds sessions, and it makes a majority with one other.
func TestServerThatJoinedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s1, s2 := n.server("s1", "s1", "s2"), n.server("s2", "s1", "s2")
		n.server("s3", "s1", "s2", "s3")
		n.agent("n1", "s3")
		time.Sleep(5 * time.Second)
		if entry := s1.Node("n1"); entry.State != Unknown {
			t.Errorf("s1 takes the word of a server that is no member: %+v", entry)
		}
		s1.among("s1", "s2", "s3")
		s2.among("s1", "s2", "s3")
		s1.expect(t, 2*time.Second, "n1", Alive)
		s2.kill()
		time.Sleep(silentLimit)
		s1.expect(t, 0, "n1", Alive)
		if views := s1.Views(); views["s3"].Address != "s3:7946" {
			t.Errorf("s1 knows these views: %v", views)
		}
	})
}

// TestRemovedServer sends its agents elsewhere, since nobody hears it any more.
func TestRemovedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		all := []string{"s1", "s2", "s3"}
		s1, s2, s3 := n.server("s1", all...), n.server("s2", all...), n.server("s3", all...)
		n.agent("n1", "s3", "s1")
		s1.expect(t, time.Second, "n1", Alive)
		s1.among("s1", "s2")
		s2.among("s1", "s2")
		time.AfterFunc(noticed, s3.lose)
		s1.notLost(t, time.Minute, "n1")
		if state, _ := s1.ownState("n1"); state != open {
			t.Error("the agent is still with the removed server")
		}
		if peers, _ := s1.present(); len(peers) != 1 {
			t.Errorf("peers: %v", peers)
		}
	})
}

// TestAllServersAreReplaced one by one, and the agent, which was told of the first ones only, is never lost: each server tells it
// who the servers are.
func TestAllServersAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		all := []string{"s1", "s2", "s3"}
		hosts := map[string]*host{}
		regroup := func(names ...string) {
			for _, name := range names {
				if hosts[name] == nil {
					hosts[name] = n.server(name, names...)
				}
				hosts[name].among(names...)
				hosts[name].tells(names...)
			}
		}
		regroup(all...)
		n.agent("n1", all...)
		hosts["s1"].expect(t, time.Second, "n1", Alive)
		for _, next := range []string{"s4", "s5", "s6"} {
			regroup(append(all, next)...)
			hosts[next].expect(t, 2*pingGrace, "n1", Alive)
			former := hosts[all[0]]
			all = append(all[1:], next)
			regroup(all...)
			former.lose()
			hosts[next].notLost(t, noticed, "n1")
			former.kill()
			for _, name := range all {
				hosts[name].notLost(t, 2*pingGrace, "n1")
			}
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if diff := cmp.Diff([]string{"s4", "s5", "s6"}, n.servers["n1"]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAgentsLearnWhereServersGossip with their session, also of a server that comes later.
func TestAgentsLearnWhereServersGossip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		s1 := n.server("s1", "s1")
		n.agent("n1", "s1")
		time.Sleep(time.Second)
		s1.among("s1", "s2")
		n.server("s2", "s1", "s2")
		time.Sleep(2 * pingGrace / pingsPerDeadline)
		n.mu.Lock()
		defer n.mu.Unlock()
		if diff := cmp.Diff([]string{"s2:7946", "s1:7946"}, n.told["n1"]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestQuiet: what is overdue is known everywhere within seconds, and so is a ping that comes after all.
func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		name          string
		serverIsMuted bool
	}{{"the agent falls silent", false}, {"its server's machine too", true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.server("s1", "s1", "s2")
				s2 := n.server("s2", "s1", "s2")
				n.agent("n1", "s1")
				s2.expect(t, time.Minute, "n1", Alive)
				n.mute("n1", "s1")
				if c.serverIsMuted {
					n.mute("s1", "s2")
				}
				s2.expect(t, 5*time.Second, "n1", Quiet)
				n.unmute()
				s2.expect(t, 10*time.Second, "n1", Alive)
			})
		})
	}
}

func TestClientWithoutServers(t *testing.T) {
	if err := (&Client{Servers: func() []string { return nil }, Logger: slog.New(slog.DiscardHandler)}).Run(context.Background()); err == nil {
		t.Error("no error")
	}
}

// TestSessionAfterLongQuiet: a server that has slept without sessions looks at deadlines again, for its own sessions and for those that a peer
// tells of.
func TestSessionAfterLongQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := NewTable("s2", nil), NewTable("s1", nil)
		own.SetServers(Servers{Votes: true, Peers: []Peer{{Name: "s2", Voter: true}}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = own.Run(ctx) })
		time.Sleep(time.Hour)
		if _, err := own.open("n1", "a", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pingGrace + sweepInterval + memory + sweepInterval)
		if entries := own.Entries(); len(entries) != 0 {
			t.Errorf("an own session that nobody renewed: %v", entries)
		}
		time.Sleep(time.Hour)
		if _, err := peer.open("n2", "a", 1); err != nil {
			t.Fatal(err)
		}
		if err := own.merge(peer.digest(View{})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(silentLimit + sweepInterval)
		if entry := own.Node("n2"); entry.State != Quiet {
			t.Errorf("the session of a peer that fell silent: %+v", entry)
		}
	})
}
