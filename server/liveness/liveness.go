package liveness

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/internal/aligned"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/peers"
)

const (
	// recountInterval is how often the servers' views of gossip are counted
	// when nothing has announced a change.
	recountInterval = 500 * time.Millisecond
	// membersInterval is how often the membership of the log is looked at.
	membersInterval = time.Second
)

// Server is a server of the control plane now, and whether it votes.
type Server struct {
	trust.Server
	Voter bool
	// Told is the address by which agents find it: the log's, which 'setpoint cluster replace' changes; the flags of other servers may
	// have an older one. Empty: the Endpoint.
	Told string
}

func (s Server) equal(other Server) bool {
	return s.Name == other.Name && s.Endpoint == other.Endpoint && s.Voter == other.Voter && s.Told == other.Told
}

// Config is what the liveness layer of a server needs.
type Config struct {
	// Name and Endpoint are this server's.
	Name, Endpoint string
	// Members are the servers of the log now, this one included.
	Members func() []Server
	// Led ends while this server has no leader; nil: it always has one.
	Led      func() context.Context
	Identity *trust.Live
	// Authority is the cluster's: agents are told whom to believe. Nil: they are not.
	Authority *trust.CA
	// Revoked knows who is shut out: it is not asked, and no member of the pool. Nil: nobody is.
	Revoked *revocation.Judge
	// Dial reaches the others; nil: over the network.
	Dial peers.Dial
	// Gossip joins the pool of nodes and servers with Keys; nil: sessions alone.
	Gossip *gossip.Membership
	Keys   *trust.GossipRing
	// Follows says that Keys are those of the cluster now, and not those of when this server stopped: agents are told of them from then on.
	// Nil: they always are.
	Follows func() bool
	Logger  *slog.Logger
}

// Liveness is what one server knows of its nodes: sessions at first hand and by
// its peers, gossip by the votes of all servers. It implements nodelifecycle.Liveness.
type Liveness struct {
	config   Config
	reach    func(serverID, address string) (*http.Client, string)
	table    *session.Table
	sessions *session.Service
	exchange *session.Exchange
	pool     *gossip.Pool // nil without gossip
	voters   atomic.Pointer[[]string]
	feed     *feed

	mu     sync.Mutex
	gossip map[string]gossipVerdict
}

// gossipVerdict is what the servers together hold of a node.
type gossipVerdict struct {
	state nodelifecycle.GossipState
	since time.Time
}

var _ nodelifecycle.Liveness = (*Liveness)(nil)

// New makes the liveness layer of a server and joins the pool; its Run must run.
func New(ctx context.Context, c Config) (*Liveness, error) {
	reach, err := peers.Clients(c.Identity, c.Dial, c.Revoked)
	if err != nil {
		return nil, fmt.Errorf("node liveness: %w", err)
	}
	if g := c.Gossip; g != nil && g.AdvertiseIP == "" && gossip.BindsAll(g.BindAddress) {
		c.Gossip = &gossip.Membership{BindAddress: g.BindAddress, AdvertiseIP: gossip.AdvertiseIP(ctx, c.Endpoint, c.Logger)}
	}
	l := &Liveness{config: c, reach: reach, feed: newFeed(), gossip: map[string]gossipVerdict{}}
	l.table = session.NewTable(c.Name, l.feed.add)
	l.regroup(c.Members())
	l.sessions = session.NewService(session.ServiceConfig{
		Table: l.table, Led: c.Led, Node: callingNode, GossipAddresses: l.GossipAddresses, Logger: c.Logger,
		Servers: func() []string { return *l.voters.Load() },
		Ring:    l.ring, Authorities: l.authorities,
	})
	l.exchange = session.NewExchange(session.ExchangeConfig{Table: l.table, View: l.view, Logger: c.Logger})
	keys := c.Keys.Told()
	l.pool = c.Gossip.Join(gossip.Config{
		Name: c.Name, Role: gossip.RoleServer, Keys: keys.Keys, Label: keys.Label, Seeds: l.table.GossipAddresses,
		Revoked: gossip.RevokedBy(c.Revoked), Logger: c.Logger,
	})
	return l, nil
}

// servers are the members of the log as sessions see them.
func (l *Liveness) servers(members []Server) (s session.Servers) {
	for _, m := range members {
		if m.Name == l.config.Name {
			s.Votes = m.Voter
			continue
		}
		client, url := l.reach(m.Name, m.Endpoint)
		s.Peers = append(s.Peers, session.Peer{Name: m.Name, Voter: m.Voter, Client: client, URL: url})
	}
	return s
}

// follow keeps to the membership of the log until ctx ends.
func (l *Liveness) follow(ctx context.Context) error {
	known := l.config.Members()
	l.regroup(known)
	for aligned.Sleep(ctx, membersInterval) {
		if now := l.config.Members(); !slices.EqualFunc(now, known, Server.equal) {
			known = now
			l.regroup(now)
		}
	}
	return nil
}

// regroup tells sessions who the servers are, and through them the agents: those that vote, since a newcomer cannot serve yet.
func (l *Liveness) regroup(members []Server) {
	voters := []string{}
	for _, m := range members {
		if m.Voter {
			voters = append(voters, cmp.Or(m.Told, m.Endpoint))
		}
	}
	l.voters.Store(&voters)
	l.table.SetServers(l.servers(members))
}

// GossipAddresses are where the servers gossip, for agents.
func (l *Liveness) GossipAddresses() []string {
	addresses := l.table.GossipAddresses()
	if l.pool != nil {
		addresses = append(addresses, l.pool.Address())
	}
	return addresses
}

// Gossiping says where each server gossips, by its name, as far as that is known.
func (l *Liveness) Gossiping() map[string]string {
	addresses := l.table.Gossiping()
	if l.pool != nil {
		addresses[l.config.Name] = l.pool.Address()
	}
	return addresses
}

// Held is how many sessions of nodes this server holds.
func (l *Liveness) Held() int { return l.sessions.Held() }

// Services are where agents hold sessions and servers tell each other of them.
func (l *Liveness) Services() []apiserver.Service {
	sessionPrefix, sessions := l.sessions.Handler()
	digestPrefix, digests := l.exchange.Handler()
	return []apiserver.Service{
		{Prefix: sessionPrefix, Handler: sessions, Allow: auth.IsNode, Traffic: apiserver.Parts},
		{Prefix: digestPrefix, Handler: digests, Allow: auth.IsServer, Traffic: apiserver.Parts},
	}
}

// callingNode is the node whose certificate the request came with.
func callingNode(ctx context.Context) (string, bool) {
	u, ok := request.UserFrom(ctx)
	if !ok || !auth.IsNode(u) {
		return "", false
	}
	return strings.CutPrefix(u.GetName(), trust.NodeUser(""))
}

// Run watches nodes until ctx ends, then leaves the pool.
func (l *Liveness) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	run := func(f func(context.Context) error) { group.Go(func() error { return f(groupCtx) }) }
	run(l.table.Run)
	run(l.sessions.Run)
	run(l.exchange.Run)
	run(l.follow)
	run(l.feed.run)
	if l.pool != nil {
		run(l.pool.Run)
		run(l.count)
	}
	err := group.Wait()
	if l.pool != nil {
		if leaveErr := l.pool.Leave(gossip.LeaveTimeout); err == nil {
			err = leaveErr
		}
	}
	return err
}

// Node implements nodelifecycle.Liveness.
func (l *Liveness) Node(name string) nodelifecycle.Signal {
	entry := l.table.Node(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	verdict := l.gossip[name]
	return nodelifecycle.Signal{
		Session: sessionStates[entry.State], SessionSince: entry.Since,
		Gossip: verdict.state, GossipSince: verdict.since,
	}
}

var sessionStates = map[session.State]nodelifecycle.SessionState{
	session.Unknown:       nodelifecycle.SessionUnknown,
	session.Alive:         nodelifecycle.SessionAlive,
	session.Lost:          nodelifecycle.SessionLost,
	session.Quiet:         nodelifecycle.SessionQuiet,
	session.ClosedCleanly: nodelifecycle.SessionClosedCleanly,
}

// Changes implements nodelifecycle.Liveness.
func (l *Liveness) Changes() <-chan string { return l.feed.changes() }

// view is this server's gossip as its peers get to know it.
func (l *Liveness) view() session.View {
	if l.pool == nil {
		return session.View{}
	}
	members := l.pool.Members()
	view := session.View{Suspended: distrusts(members, l.table.Entries(), time.Now()), Address: l.pool.Address()}
	for _, m := range members {
		if m.Role == gossip.RoleNode && m.State != gossip.NotMember {
			view.Opinions = append(view.Opinions, session.Opinion{Node: m.Name, Dead: m.State == gossip.Dead})
		}
	}
	return view
}

// count counts the votes again whenever some view may have changed.
func (l *Liveness) count(ctx context.Context) error {
	ticker := time.NewTicker(recountInterval)
	defer ticker.Stop()
	var seeds []string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-l.pool.Changes():
			l.table.Tell()
		}
		if now := l.table.GossipAddresses(); !slices.Equal(now, seeds) {
			seeds = now
			l.pool.Rejoin()
		}
		views, own := l.table.Views(), l.view()
		if l.table.Votes() {
			views[l.config.Name] = own
		}
		l.adopt(tally(views, l.table.Voters(), own.Suspended), time.Now())
	}
}

// adopt takes a new result and reports what it changes.
func (l *Liveness) adopt(result map[string]nodelifecycle.GossipState, now time.Time) {
	l.mu.Lock()
	var changed []string
	for node, was := range l.gossip {
		if _, ok := result[node]; !ok && was.state != nodelifecycle.GossipNotMember {
			result[node] = nodelifecycle.GossipNotMember
		}
	}
	for node, state := range result {
		if l.gossip[node].state == state {
			continue
		}
		l.gossip[node] = gossipVerdict{state: state, since: now}
		if state == nodelifecycle.GossipNotMember {
			delete(l.gossip, node)
		}
		changed = append(changed, node)
	}
	l.mu.Unlock()
	for _, node := range changed {
		l.feed.add(node)
	}
}
