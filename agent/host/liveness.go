package host

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/knownservers"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/failover"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// scheme stands before the address of a server in its URL.
const scheme = "https://"

// sessionLeaseInterval is how often an agent with a session renews its Lease: the
// session proves that it lives, the Lease only shows it to other clients.
const sessionLeaseInterval = time.Minute

// LivenessConfig configures the session and the gossip of an agent.
type LivenessConfig struct {
	NodeName string
	// Servers are "host:port"; with Known they are not looked at.
	Servers []string
	// Known are the servers, and is told of what servers say of that. Nil: Servers, and what they say since.
	Known *knownservers.List
	// Identity is the node's; only servers are trusted.
	Identity *trust.Live
	// Life is that of the cluster: no session is held elsewhere. Nil: any life will do.
	Life *clusterlife.Pin
	// Gossip joins the pool; nil: sessions alone.
	Gossip *gossip.Membership
	// GossipKeys are the keys of the pool, as servers tell them. Nil: the agent neither gossips nor follows what replaces them.
	GossipKeys *trust.GossipRing
	// Gossiping is told where this agent gossips, "" if it does not, and where servers do, as far as they have said. Nil is allowed.
	Gossiping func(here string, servers []string)
	Logger    *slog.Logger

	revoked *revocation.Judge // knows who is shut out: no session is held there, nor is he a member of the pool; nil: nobody is
}

// RunLiveness keeps a session and membership in the pool until ctx ends, and
// says goodbye to both.
func RunLiveness(ctx context.Context, c LivenessConfig) error {
	config, err := c.Identity.ClientConfig()
	if err != nil {
		return err
	}
	transport := trust.NewTransport(c.Identity, config, failover.Guarded(c.revoked, failover.SessionTransport))
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := c.run(ctx, &http.Client{Transport: c.Life.Through(transport)}); err != nil {
			return err
		}
	}
	return nil
}

// run is RunLiveness for as long as the pool has the same label.
func (c *LivenessConfig) run(ctx context.Context, http *http.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seeds gossipSeeds
	pool := c.join(seeds.get)
	c.tellGossip(pool, nil)
	client := &session.Client{HTTP: http, Logger: c.Logger}
	client.GossipAddresses = func(addresses []string) {
		c.tellGossip(pool, addresses)
		if seeds.set(addresses) && pool != nil {
			pool.Rejoin()
		}
	}
	if c.GossipKeys != nil {
		keys := &ringKeeper{ring: c.GossipKeys, pool: pool, relabelled: cancel, logger: c.Logger}
		client.RingHeld, client.Ring = keys.held, keys.take
	}
	known := c.Known
	if known == nil {
		known = knownservers.Fixed(c.Servers, c.Logger)
	}
	client.Told = func(from string, servers []string) { known.Told(strings.TrimPrefix(from, scheme), servers) }
	client.Servers = func() (urls []string) {
		for _, server := range known.Now() {
			urls = append(urls, scheme+server)
		}
		return urls
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return client.Run(ctx) })
	if pool != nil {
		group.Go(func() error {
			err := pool.Run(ctx)
			if leaveErr := pool.Leave(gossip.LeaveTimeout); leaveErr != nil {
				c.Logger.Debug("the gossip pool was not told of the goodbye", "err", leaveErr)
			}
			return err
		})
	}
	return group.Wait()
}

// join becomes a member of the pool, if there are keys.
func (c *LivenessConfig) join(seeds func() []string) *gossip.Pool {
	if c.GossipKeys == nil {
		return nil
	}
	keys := c.GossipKeys.Told()
	return c.Gossip.Join(gossip.Config{
		Name: c.NodeName, Role: gossip.RoleNode, Keys: keys.Keys, Label: keys.Label, Seeds: seeds,
		Revoked: gossip.RevokedBy(c.revoked), Logger: c.Logger,
	})
}

func (c *LivenessConfig) tellGossip(pool *gossip.Pool, servers []string) {
	if c.Gossiping == nil {
		return
	}
	here := ""
	if pool != nil {
		here = pool.Address()
	}
	c.Gossiping(here, servers)
}

// gossipSeeds is where the servers gossip, as the server of the session says: they
// know their ports, nobody else has to.
type gossipSeeds struct {
	mu        sync.Mutex
	addresses []string
}

func (s *gossipSeeds) get() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addresses
}

// set reports whether they are others than before.
func (s *gossipSeeds) set(addresses []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !slices.Equal(s.addresses, addresses)
	s.addresses = addresses
	return changed
}
