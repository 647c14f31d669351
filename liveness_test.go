package setpoint

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/gossip"
	"github.com/setpoint-io/setpoint/agent/session"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestTally(t *testing.T) {
	dead := session.View{Opinions: []session.Opinion{{Node: "n1", Dead: true}}}
	alive := session.View{Opinions: []session.Opinion{{Node: "n1"}}}
	doubtful := session.View{Opinions: dead.Opinions, Suspended: true}
	blind := session.View{}
	for _, c := range []struct {
		name      string
		views     []session.View
		servers   int
		suspended bool
		want      nodelifecycle.GossipState
	}{
		{"nobody knows it", []session.View{blind, blind}, 3, false, nodelifecycle.GossipNotMember},
		{"one of three", []session.View{dead, alive, alive}, 3, false, nodelifecycle.GossipAlive},
		{"two of three", []session.View{dead, dead, alive}, 3, false, nodelifecycle.GossipDead},
		{"two of three, one silent", []session.View{dead, dead}, 3, false, nodelifecycle.GossipDead},
		{"one of three, two silent", []session.View{dead}, 3, false, nodelifecycle.GossipAlive},
		{"a doubtful vote", []session.View{dead, doubtful, alive}, 3, false, nodelifecycle.GossipAlive},
		{"the judge doubts itself", []session.View{dead, dead, dead}, 3, true, nodelifecycle.GossipAlive},
		{"the only server", []session.View{dead}, 1, false, nodelifecycle.GossipDead},
		{"one of two", []session.View{dead, alive}, 2, false, nodelifecycle.GossipAlive},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := map[string]session.View{}
			for i, v := range c.views {
				views[fmt.Sprint("s", i)] = v
			}
			if got := tally(views, c.servers, c.suspended)["n1"]; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestDistrusts(t *testing.T) {
	now := time.Unix(1000, 0)
	members := func(alive, dead int) []gossip.Member {
		all := []gossip.Member{{Role: gossip.RoleServer, State: gossip.Alive}} // itself
		for range alive {
			all = append(all, gossip.Member{State: gossip.Alive})
		}
		for range dead {
			all = append(all, gossip.Member{State: gossip.Dead})
		}
		return append(all, gossip.Member{State: gossip.NotMember})
	}
	sessions := func(alive, lost int, ago time.Duration) map[string]session.Entry {
		all := map[string]session.Entry{}
		for i := range alive {
			all[fmt.Sprint("a", i)] = session.Entry{State: session.Alive}
		}
		for i := range lost {
			all[fmt.Sprint("l", i)] = session.Entry{State: session.Lost, Since: now.Add(-ago)}
		}
		return all
	}
	for _, c := range []struct {
		name     string
		members  []gossip.Member
		sessions map[string]session.Entry
		want     bool
	}{
		{"alone", members(0, 0), nil, false},
		{"all well", members(5, 0), sessions(3, 0, 0), false},
		{"one agent of three gone", members(4, 1), sessions(2, 1, time.Second), false},
		{"a server and two agents of three gone", members(2, 3), sessions(1, 2, time.Second), true},
		{"it sees nobody", members(0, 5), nil, true},
		{"the only agent is gone", members(0, 1), sessions(0, 1, time.Second), true},
		{"all agents gone at once", members(3, 3), sessions(0, 3, time.Second), true},
		{"a fifth of the sessions", members(100, 0), sessions(80, 20, time.Second), false},
		{"more than a fifth", members(100, 0), sessions(79, 21, time.Second), true},
		{"long ago", members(100, 0), sessions(79, 21, time.Minute), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := distrusts(c.members, c.sessions, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestChangeFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newChangeFeed()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = f.run(ctx) }()
		f.add("first")
		synctest.Wait() // it waits for a reader now
		f.add("n1")
		f.add("n1")
		if a, b := <-f.out, <-f.out; a != "first" || b != "n1" {
			t.Errorf("got %q, %q", a, b)
		}
		f.add("first")
		synctest.Wait()
		for i := range feedLimit + 10 {
			f.add(fmt.Sprint(i))
		}
		if a, b := <-f.out, <-f.out; a != "first" || b != "" {
			t.Errorf("got %q, %q, want everything after the limit", a, b)
		}
		synctest.Wait()
		select {
		case name := <-f.out:
			t.Errorf("%q besides", name)
		default:
		}
		cancel()
	})
}

func TestAdopt(t *testing.T) {
	l := &liveness{table: session.NewTable("s1", nil, nil), feed: newChangeFeed(), gossip: map[string]gossipVerdict{}}
	first, second, third := time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
	l.adopt(map[string]nodelifecycle.GossipState{"n1": nodelifecycle.GossipAlive, "n2": nodelifecycle.GossipAlive}, first)
	l.adopt(map[string]nodelifecycle.GossipState{"n1": nodelifecycle.GossipDead, "n2": nodelifecycle.GossipAlive}, second)
	l.feed.take()
	l.adopt(map[string]nodelifecycle.GossipState{"n1": nodelifecycle.GossipDead}, third)
	if diff := cmp.Diff(map[string]struct{}{"n2": {}}, l.feed.take()); diff != "" {
		t.Error("changed:", diff)
	}
	want := nodelifecycle.Signal{Gossip: nodelifecycle.GossipDead, GossipSince: second}
	if diff := cmp.Diff(want, l.Node("n1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(nodelifecycle.Signal{}, l.Node("n2")); diff != "" {
		t.Error("a member that left:", diff)
	}
}

// TestLivenessOverTLS runs an agent against a server as they are wired: real
// certificates, sockets on loopback, gossip.
func TestLivenessOverTLS(t *testing.T) {
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	servers := []pki.Server{{Name: "s1", Endpoint: listener.Addr().String()}}
	trust, err := pki.InitCluster(t.TempDir(), servers, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := trust.LoadServer("s1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLiveness(ServerConfig{
		Name: "s1", Trust: trust, InitialServers: servers, Logger: logger, Gossip: &GossipConfig{BindAddress: "127.0.0.1:0"},
	}, identity)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stopServer := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	serveTLS(t, listener, identity, l)

	node, err := trust.CA.IssueNode("n1", []string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := node.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	agentCtx, stopAgent := context.WithCancel(t.Context())
	agentDone := make(chan error, 1)
	go func() {
		agentDone <- runAgentLiveness(agentCtx, AgentLivenessConfig{
			NodeName: "n1", Servers: []string{servers[0].Endpoint}, TLS: tlsConfig, GossipKey: trust.GossipKey, Logger: logger,
			Gossip: &GossipConfig{BindAddress: "127.0.0.1:0", Seeds: []string{l.pool.Address()}},
		})
	}()
	waitForSignal(t, l, nodelifecycle.SessionAlive, nodelifecycle.GossipAlive)
	stopAgent()
	if err := <-agentDone; err != nil {
		t.Error(err)
	}
	waitForSignal(t, l, nodelifecycle.SessionClosedCleanly, nodelifecycle.GossipNotMember)
	stopServer()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func serveTLS(t *testing.T, listener net.Listener, identity *pki.Identity, l *liveness) {
	t.Helper()
	config, err := identity.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, s := range l.Services() {
		mux.Handle(s.Prefix, s.Handler)
	}
	authenticator := auth.NewAuthenticator(nil)
	server := &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, ok, err := authenticator.AuthenticateRequest(r)
		if err != nil || !ok {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), response.User)))
	})}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
}

// waitForSignal waits for what the controller is to see; changes are announced.
func waitForSignal(t *testing.T, l *liveness, s nodelifecycle.SessionState, g nodelifecycle.GossipState) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		signal := l.Node("n1")
		if signal.Session == s && signal.Gossip == g {
			return
		}
		select {
		case <-l.Changes():
		case <-timeout:
			t.Fatalf("signal: %+v", signal)
		}
	}
}
