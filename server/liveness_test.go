package server

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/liveness"
)

// TestLivenessOverTLS runs an agent against a server as they are wired: real
// certificates, sockets on loopback, gossip. The agent is told the port that the server has, and finds another.
func TestLivenessOverTLS(t *testing.T) {
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	servers := []trust.Server{{Name: "s1", Endpoint: listener.Addr().String()}}
	cluster, err := trust.InitCluster(t.TempDir(), servers, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := cluster.LoadServer("s1")
	if err != nil {
		t.Fatal(err)
	}
	serverLive, err := trust.NewLive(identity)
	if err != nil {
		t.Fatal(err)
	}
	l, err := liveness.New(t.Context(), liveness.Config{
		Name: "s1", Endpoint: servers[0].Endpoint, Members: func() []liveness.Server { return []liveness.Server{{Server: servers[0], Voter: true}} },
		Identity: serverLive, Gossip: &gossip.Membership{BindAddress: "127.0.0.1:0"}, Keys: cluster.GossipKeys, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stopServer := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	serveTLS(t, listener, identity, l)

	node, err := cluster.CA.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	live, err := trust.NewLive(node)
	if err != nil {
		t.Fatal(err)
	}
	agentCtx, stopAgent := context.WithCancel(t.Context())
	agentDone := make(chan error, 1)
	go func() {
		agentDone <- host.RunLiveness(agentCtx, host.LivenessConfig{
			NodeName: "n1", Servers: []string{servers[0].Endpoint}, Identity: live, GossipKeys: cluster.GossipKeys, Logger: logger,
			Gossip: &gossip.Membership{BindAddress: l.GossipAddresses()[0]},
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

func serveTLS(t *testing.T, listener net.Listener, identity *trust.Identity, l *liveness.Liveness) {
	t.Helper()
	config, err := identity.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, s := range l.Services() {
		mux.Handle(s.Prefix, s.Handler)
	}
	isServer := func(chain []*x509.Certificate) bool {
		return strings.HasPrefix(chain[0].Subject.CommonName, "system:setpoint:server:")
	}
	authenticator := auth.NewAuthenticator(isServer, nil)
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

// waitForSignal waits for what the controller is to see; changes are announced, to one reader: none but the test may be there.
func waitForSignal(t *testing.T, l *liveness.Liveness, s nodelifecycle.SessionState, g nodelifecycle.GossipState) {
	t.Helper()
	timeout := time.After(30 * time.Second) // on a machine that does much else
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
