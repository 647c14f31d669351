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

	// authorities says which authorities the agent believes, and is told which it is to believe; nil: it does not follow them.
	authorities authorityKeeper

	revoked *revocation.Judge // knows who is shut out: no session is held there, nor is he a member of the pool; nil: nobody is
}

// authorityKeeper is a join.Membership.
type authorityKeeper interface {
	AuthoritiesHeld() []string
	Follow(authorities []byte)
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
	return c.run(ctx, &http.Client{Transport: c.Life.Through(transport)})
}

func (c *LivenessConfig) run(ctx context.Context, http *http.Client) error {
	var seeds gossipSeeds
	client := &session.Client{HTTP: http, Logger: c.Logger}
	group, ctx := errgroup.WithContext(ctx)
	var keeper *ringKeeper
	if c.GossipKeys == nil {
		c.tellGossip("", nil)
	} else {
		keeper = c.keeper(&seeds)
		client.RingHeld, client.Ring = keeper.held, keeper.take
		group.Go(func() error { return keeper.run(ctx) })
	}
	if c.authorities != nil {
		client.AuthoritiesHeld, client.Authorities = c.authorities.AuthoritiesHeld, c.authorities.Follow
	}
	client.GossipAddresses = func(addresses []string) {
		changed := seeds.set(addresses)
		seeds.tell(func(servers []string) { c.tellGossip(addressOf(keeper.now()), servers) })
		if pool := keeper.now(); changed && pool != nil {
			pool.Rejoin()
		}
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
	group.Go(func() error { return client.Run(ctx) })
	return group.Wait()
}

// keeper holds the keys of the pool, and is a member of it.
func (c *LivenessConfig) keeper(seeds *gossipSeeds) (k *ringKeeper) {
	if err := c.GossipKeys.Settle(); err != nil {
		c.Logger.Warn("gossip.key is not the key in use, which an earlier release would need", "err", err)
	}
	join := func(keys trust.GossipKeys) member {
		pool := c.Gossip.Join(gossip.Config{
			Name: c.NodeName, Role: gossip.RoleNode, Keys: keys.Keys, Label: keys.Label, Seeds: seeds.get,
			Revoked: gossip.RevokedBy(c.revoked), Logger: c.Logger,
		})
		if pool == nil {
			return nil // not an interface of nothing
		}
		return pool
	}
	k = newRingKeeper(c.GossipKeys, join, c.Logger)
	k.joined = func() { seeds.tell(func(servers []string) { c.tellGossip(addressOf(k.now()), servers) }) }
	k.joined()
	return k
}

func (c *LivenessConfig) tellGossip(here string, servers []string) {
	if c.Gossiping != nil {
		c.Gossiping(here, servers)
	}
}

// addressOf is where a member gossips, "" if it does not.
func addressOf(pool member) string {
	if pool == nil {
		return ""
	}
	return pool.Address()
}

// gossipSeeds is where the servers gossip, as the server of the session says: they
// know their ports, nobody else has to.
type gossipSeeds struct {
	mu        sync.Mutex
	addresses []string
	telling   sync.Mutex
}

// tell tells of them, one after the other: who is told last knows the newest.
func (s *gossipSeeds) tell(to func(addresses []string)) {
	s.telling.Lock()
	defer s.telling.Unlock()
	to(s.get())
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
