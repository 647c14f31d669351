package session

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
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
		s.throughout(t, 9*time.Second, "n1", Alive) // the last ping may be 5.5 s old
		s.expect(t, 6500*time.Millisecond, "n1", Lost)
	})
}

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
						s.expect(t, 50*time.Millisecond, "n1", Alive)
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
		s2.throughout(t, 9*time.Second, "n1", Alive)
		s2.expect(t, 11*time.Second, "n1", Lost)
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
		table := NewTable("s1", nil, func(node string) { changes = append(changes, node) })
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
	stranger := NewTable("s9", nil, nil)
	if err := NewTable("s1", []string{"s2"}, nil).merge(stranger.digest(View{})); err == nil {
		t.Error("a digest of a server that is no peer was taken")
	}
}

func TestClientWithoutServers(t *testing.T) {
	if err := (&Client{Logger: slog.New(slog.DiscardHandler)}).Run(context.Background()); err == nil {
		t.Error("no error")
	}
}
