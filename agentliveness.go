package setpoint

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-io/setpoint/agent/gossip"
	"github.com/setpoint-io/setpoint/agent/session"
)

// sessionLeaseInterval is how often an agent with a session renews its Lease: the
// session proves that it lives, the Lease only shows it to other clients.
const sessionLeaseInterval = time.Minute

// AgentLivenessConfig is how an agent shows that it lives.
type AgentLivenessConfig struct {
	NodeName string
	// Servers are "host:port".
	Servers []string
	// TLS shows the node's certificate and trusts servers only.
	TLS *tls.Config
	// Gossip joins the pool; nil: sessions alone.
	Gossip    *GossipConfig
	GossipKey []byte
	Logger    *slog.Logger
}

// runAgentLiveness keeps a session and membership in the pool until ctx ends, and
// says goodbye to both.
func runAgentLiveness(ctx context.Context, c AgentLivenessConfig) error {
	transport := sessionTransport(c.TLS)
	defer transport.CloseIdleConnections()
	client := &session.Client{HTTP: &http.Client{Transport: transport}, Logger: c.Logger}
	for _, server := range c.Servers {
		client.Servers = append(client.Servers, "https://"+server)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return client.Run(ctx) })
	pool := joinGossip(c.Gossip, gossip.Config{Name: c.NodeName, Role: gossip.RoleNode, Key: c.GossipKey, Logger: c.Logger})
	if pool != nil {
		group.Go(func() error {
			err := pool.Run(ctx)
			if leaveErr := pool.Leave(gossipLeaveTimeout); leaveErr != nil {
				c.Logger.Debug("the gossip pool was not told of the goodbye", "error", leaveErr)
			}
			return err
		})
	}
	return group.Wait()
}

// sessionTransport is not shared with other requests: a session must not wait
// behind them.
func sessionTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: config.Clone(), TLSHandshakeTimeout: dialTimeout,
		DialContext:       (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout,
	}
}
