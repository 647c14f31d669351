package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

var testKey = bytes.Repeat([]byte{7}, keyBytes)

// member is a Pool that runs.
type member struct {
	*Pool
	*transport
	end func()
}

// start joins the seeds: transports of servers.
func (n *network) start(t *testing.T, role Role, name string, change func(*Config), seeds ...*member) *member {
	t.Helper()
	m := &member{transport: n.transport()}
	config := Config{
		Name: name, Role: role, BindAddr: m.transport.address(), Keys: [][]byte{testKey}, Label: "test", Transport: m.transport,
		Logger: slog.New(slog.DiscardHandler),
		Seeds: func() (addresses []string) {
			for _, s := range seeds {
				addresses = append(addresses, s.transport.address())
			}
			return addresses
		},
	}
	if change != nil {
		change(&config)
	}
	var err error
	if m.Pool, err = Join(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	m.end = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(func() { m.end(); _ = m.list.Shutdown() })
	return m
}

// cluster is servers s1 to s3 at 10.0.0.1 to 3, and nodes n1... after them.
func (n *network) cluster(t *testing.T, nodes int) (all []*member) {
	for i := range 3 {
		all = append(all, n.start(t, RoleServer, fmt.Sprintf("s%d", i+1), nil, all...))
	}
	for i := range nodes {
		all = append(all, n.start(t, RoleNode, fmt.Sprintf("n%d", i+1), nil, all[:3]...))
	}
	return all
}

// until waits for a condition and returns how long it took.
func until(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(start)
}

func (m *member) sees(node string, want State) func() bool {
	return func() bool { s, _ := m.State(node); return s == want }
}

func complete(all []*member) func() bool {
	return func() bool {
		for _, m := range all {
			for _, other := range m.Members() {
				if other.State != Alive {
					return false
				}
			}
			if len(m.Members()) != len(all) {
				return false
			}
		}
		return true
	}
}

func TestDeadNodeIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lost = 20
		all := n.cluster(t, 3)
		until(t, 30*time.Second, "a complete pool", complete(all))
		time.Sleep(time.Minute)
		if !complete(all)() {
			t.Error("lost packets killed somebody")
		}
		n.separate(among("10.0.0.6"))
		for _, server := range all[:3] {
			until(t, 12*time.Second, "n3 dead at a server", server.sees("n3", Dead))
			if _, since := server.State("n3"); time.Since(since) > 12*time.Second {
				t.Errorf("dead since %v", since)
			}
		}
		if s, _ := all[0].State("n1"); s != Alive {
			t.Errorf("n1 is %v", s)
		}
		if s, _ := all[0].State("n9"); s != NotMember {
			t.Errorf("n9 is %v", s)
		}
	})
}

func TestHalvesFindTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		all := n.cluster(t, 3)
		until(t, 30*time.Second, "a complete pool", complete(all))
		n.separate(among("10.0.0.1", "10.0.0.4"))
		time.Sleep(3 * time.Minute) // both halves have forgotten each other
		if !all[0].sees("n2", Dead)() || !all[0].sees("n1", Alive)() || !all[1].sees("n1", Dead)() {
			t.Fatal("the pool did not fall apart")
		}
		n.separate(func(string, string) bool { return false })
		until(t, 45*time.Second, "a complete pool again", complete(all))
	})
}

func TestStrangersStayOut(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"another key":   func(c *Config) { c.Keys = [][]byte{bytes.Repeat([]byte{8}, keyBytes)} },
		"another label": func(c *Config) { c.Label = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				server := n.start(t, RoleServer, "s1", nil)
				stranger := n.start(t, RoleNode, "n1", change, server)
				time.Sleep(2 * time.Minute)
				if len(server.Members()) != 1 || len(stranger.Members()) != 1 {
					t.Errorf("members: %v, %v", server.Members(), stranger.Members())
				}
			})
		})
	}
}

func TestLeaveIsNoDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		all := n.cluster(t, 2)
		until(t, 30*time.Second, "a complete pool", complete(all))
		for len(all[0].Changes()) > 0 {
			<-all[0].Changes()
		}
		leaver := all[4]
		leaver.end()
		if err := leaver.Leave(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		until(t, 2*time.Second, "n2 left", all[0].sees("n2", NotMember))
		if name := <-all[0].Changes(); name != "n2" {
			t.Errorf("changed: %q", name)
		}
		time.Sleep(time.Minute)
		missed := 0 // gossip may miss a member, which then finds that nobody answers
		for _, p := range all[:4] {
			if s, _ := p.State("n2"); s == Alive {
				t.Error("n2 is alive")
			} else if s == Dead {
				missed++
			}
		}
		if missed > 1 {
			t.Errorf("%d members take n2 for dead", missed)
		}
	})
}

func TestNodeNamedAsAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		server := n.start(t, RoleServer, "x", nil)
		n.start(t, RoleNode, "x", nil, server)
		until(t, 10*time.Second, "both", func() bool { return len(server.Members()) == 2 })
		if s, _ := server.State("x"); s != Alive {
			t.Errorf("x is %v", s)
		}
	})
}

func TestTheDeadAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		all := n.cluster(t, 1)
		until(t, 30*time.Second, "a complete pool", complete(all))
		n.separate(among("10.0.0.4"))
		until(t, time.Minute, "n1 dead", all[0].sees("n1", Dead))
		until(t, deadMemory+time.Minute, "n1 forgotten", all[0].sees("n1", NotMember))
	})
}

func TestBadConfig(t *testing.T) {
	good := Config{Name: "s1", Role: RoleServer, BindAddr: "127.0.0.1:0", Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)}
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"no key":    {func(c *Config) { c.Keys = nil }, ErrNoKey},
		"short key": {func(c *Config) { c.Keys = [][]byte{testKey[:16]} }, ErrNoKey},
		"no name":   {func(c *Config) { c.Name = "" }, ErrNoName},
		"no role":   {func(c *Config) { c.Role = "" }, ErrNoName},
		"no port":   {func(c *Config) { c.BindAddr = "127.0.0.1" }, ErrBadAddress},
		"bad port":  {func(c *Config) { c.BindAddr = "127.0.0.1:http" }, ErrBadAddress},
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			c.change(&config)
			if _, err := Join(config); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestSockets is the one test over real ones.
func TestSockets(t *testing.T) {
	var first *Pool
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	for i, role := range []Role{RoleServer, RoleNode, RoleNode} {
		p, err := Join(Config{
			Name: fmt.Sprint("m", i), Role: role, BindAddr: "127.0.0.1:0", Keys: [][]byte{testKey}, Label: "test",
			Logger: slog.New(slog.DiscardHandler),
			Seeds:  func() []string { return []string{first.Address()} },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Leave(100 * time.Millisecond) }()
		if i == 0 {
			first = p
			continue
		}
		running.Go(func() { _ = p.Run(ctx) })
	}
	for deadline := time.Now().Add(8 * time.Second); len(first.Members()) != 3; {
		if time.Now().After(deadline) {
			t.Fatalf("members: %v", first.Members())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestWhoIsRevokedIsNoMember: nothing that is heard of him counts, from the moment on, and he does not come in again.
func TestWhoIsRevokedIsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, judge := newNetwork(t), &revocation.Judge{}
		s1 := n.start(t, RoleServer, "s1", func(c *Config) { c.Revoked = RevokedBy(judge) })
		n1 := n.start(t, RoleNode, "n1", nil, s1)
		until(t, time.Minute, "s1 sees n1", s1.sees("n1", Alive))
		judge.Use(revocation.NewList([]revocation.Entry{{Target: revocation.Target{Kind: revocation.Node, Name: "n1"}}}))
		if state, _ := s1.State("n1"); state != NotMember || len(s1.Members()) != 1 {
			t.Errorf("%s, %v", state, s1.Members())
		}
		n1.end()
		_ = n1.list.Shutdown()
		n.start(t, RoleNode, "n1", nil, s1)
		n.start(t, RoleNode, "n2", nil, s1)
		until(t, time.Minute, "s1 sees n2", s1.sees("n2", Alive))
		if state, _ := s1.State("n1"); state != NotMember || len(s1.Members()) != 2 {
			t.Errorf("again: %s, %v", state, s1.Members())
		}
	})
}
