package setpoint

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
)

// TestNodeOutlivesItsServer runs three whole servers and an agent's liveness, and
// stops the server that holds its session.
func TestNodeOutlivesItsServer(t *testing.T) {
	trust, addresses, servers, gossipConfig := startThree(t)
	stop := startAgentLiveness(t, trust, addresses, gossipConfig)
	for _, s := range servers {
		eventually(t, s, nodelifecycle.SessionAlive, nodelifecycle.GossipAlive)
	}
	if members := servers[1].gossipMembers(); len(members) != 4 {
		t.Errorf("members: %v", members)
	}
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

// startThree runs three whole servers. Whoever gossips with them uses the last result.
func startThree(t *testing.T) (*pki.Cluster, []pki.Server, []*Server, *GossipConfig) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	var addresses []pki.Server
	var listeners []net.Listener
	for _, name := range []string{"server-1", "server-2", "server-3"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, listener)
		addresses = append(addresses, pki.Server{Name: name, Endpoint: listener.Addr().String()})
	}
	trust, err := pki.InitCluster(t.TempDir(), addresses, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	gossipConfig := &GossipConfig{BindAddress: "127.0.0.1:0"}
	var servers []*Server
	for i, address := range addresses {
		s, err := StartServer(context.Background(), ServerConfig{
			Name: address.Name, DataDir: t.TempDir(), Trust: trust, InitialServers: addresses,
			Listener: listeners[i], Gossip: gossipConfig, Logger: logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop() })
		servers = append(servers, s)
		gossipConfig = &GossipConfig{BindAddress: "127.0.0.1:0", Seeds: []string{servers[0].liveness.pool.Address()}}
	}
	return trust, addresses, servers, gossipConfig
}

func (s *Server) holdsSessions() bool { return s.liveness.sessions.Held() > 0 }

func startAgentLiveness(t *testing.T, trust *pki.Cluster, addresses []pki.Server, g *GossipConfig) (stop func()) {
	t.Helper()
	node, err := trust.CA.IssueNode("n1", []string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := node.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config := AgentLivenessConfig{NodeName: "n1", TLS: tlsConfig, Gossip: g, GossipKey: trust.GossipKey, Logger: slog.New(slog.DiscardHandler)}
	for _, a := range addresses {
		config.Servers = append(config.Servers, a.Endpoint)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- runAgentLiveness(ctx, config) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func eventually(t *testing.T, s *Server, session nodelifecycle.SessionState, gossip ...nodelifecycle.GossipState) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		signal := s.liveness.Node("n1")
		if signal.Session == session && slices.Contains(gossip, signal.Gossip) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %+v", s.config.Name, signal)
		}
	}
}
