package setpoint

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// stopLimit is the longest that the stop of a server of a healthy cluster may
// take; drainTimeout and the hand-over are most of it.
const stopLimit = 2 * time.Second

// TestServersStopAtOnce: the open connections of Raft do not hold a stop up.
func TestServersStopAtOnce(t *testing.T) {
	servers := startServers(t, "server-1", "server-2", "server-3")
	for _, s := range servers[:2] { // the last one would have nobody to hand over to
		start := time.Now()
		if err := s.Stop(); err != nil {
			t.Errorf("%s: %v", s.config.Name, err)
		}
		if took := time.Since(start); took > stopLimit {
			t.Errorf("%s took %v to stop, want at most %v", s.config.Name, took, stopLimit)
		}
	}
}

// startServers starts the servers of one cluster and returns when all are ready.
func startServers(t *testing.T, names ...string) []*Server {
	t.Helper()
	var addresses []pki.Server
	var listeners []net.Listener
	for _, name := range names {
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
	var servers []*Server
	for i, address := range addresses {
		s, err := StartServer(context.Background(), ServerConfig{
			Name: address.Name, DataDir: t.TempDir(), Trust: trust, InitialServers: addresses,
			Listener: listeners[i], Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return servers
}
