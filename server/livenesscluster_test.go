package server

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/liveness"
)

// TestNodeOutlivesItsServer runs three whole servers and an agent's liveness, and
// stops the server that holds its session.
func TestNodeOutlivesItsServer(t *testing.T) {
	cluster, addresses, servers, gossipConfig := startThree(t)
	register(t, servers[0], "n1")
	register(t, servers[0], "mute")
	stop := startAgentLiveness(t, "n1", cluster, addresses, gossipConfig)
	for _, s := range servers {
		eventually(t, s, nodelifecycle.SessionAlive, nodelifecycle.GossipAlive)
	}
	stopMute := startAgentLiveness(t, "mute", cluster, addresses, nil)
	want := []liveness.GossipMember{
		{Name: "server-1", Role: "server", State: "alive"},
		{Name: "server-2", Role: "server", State: "alive"},
		{Name: "server-3", Role: "server", State: "alive"},
		{Name: "mute", Role: "node", State: "absent"},
		{Name: "n1", Role: "node", State: "alive"},
	}
	soon(t, func() string { return cmp.Diff(want, servers[1].liveness.GossipMembers()) })
	stopMute()
	for i, s := range servers {
		if s.holdsSessions() {
			servers = append(servers[:i:i], servers[i+1:]...)
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			break
		}
	}
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, s := range servers {
			if signal := s.liveness.Node("n1"); signal.Session != nodelifecycle.SessionAlive || signal.Gossip != nodelifecycle.GossipAlive {
				t.Fatalf("%s: %+v", s.config.Name, signal)
			}
		}
	}
	stop()
	for _, s := range servers {
		// The stopped server's view of gossip counts until it is too old.
		eventually(t, s, nodelifecycle.SessionClosedCleanly, nodelifecycle.GossipNotMember, nodelifecycle.GossipAlive)
	}
}

// startThree runs three whole servers, with what changes say; who gossips with them may bind as they do.
func startThree(t *testing.T, changes ...func(*Config)) (*trust.Cluster, []trust.Server, []*Server, *gossip.Membership) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	var addresses []trust.Server
	var listeners []net.Listener
	for _, name := range []string{"server-1", "server-2", "server-3"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, listener)
		addresses = append(addresses, trust.Server{Name: name, Endpoint: listener.Addr().String()})
	}
	cluster, err := trust.InitCluster(t.TempDir(), addresses, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	gossipConfig := &gossip.Membership{BindAddress: "127.0.0.1:0"}
	var servers []*Server
	for i, address := range addresses {
		config := Config{
			Name: address.Name, DataDir: t.TempDir(), Trust: cluster, InitialServers: addresses,
			Listener: listeners[i], Gossip: gossipConfig, Logger: logger,
		}
		for _, change := range changes {
			change(&config)
		}
		s, err := Start(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop() })
		servers = append(servers, s)
	}
	return cluster, addresses, servers, gossipConfig
}

func (s *Server) holdsSessions() bool { return s.liveness.Held() > 0 }

func startAgentLiveness(t *testing.T, name string, cluster *trust.Cluster, addresses []trust.Server, g *gossip.Membership) (stop func()) {
	t.Helper()
	node, err := cluster.CA.IssueNode(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	live, err := trust.NewLive(node)
	if err != nil {
		t.Fatal(err)
	}
	config := host.LivenessConfig{NodeName: name, Identity: live, Gossip: g, Logger: slog.New(slog.DiscardHandler)}
	config.GossipKeys = cluster.Copied().GossipKeys // a ring of its own, as on another machine
	for _, a := range addresses {
		config.Servers = append(config.Servers, a.Endpoint)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- host.RunLiveness(ctx, config) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// within10s asks until the answer is "".
// patience is how long these tests wait for what comes within seconds on a machine that has nothing else to do.
const patience = time.Minute

// soon asks until the answer is "".
func soon(t *testing.T, ask func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		answer := ask()
		if answer == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(answer)
		}
	}
}

func eventually(t *testing.T, s *Server, session nodelifecycle.SessionState, gossip ...nodelifecycle.GossipState) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		signal := s.liveness.Node("n1")
		if signal.Session == session && slices.Contains(gossip, signal.Gossip) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %+v", s.config.Name, signal)
		}
	}
}
