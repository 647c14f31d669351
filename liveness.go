package setpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/agent/gossip"
	"github.com/setpoint-io/setpoint/agent/session"
	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
)

const (
	// recountInterval is how often the servers' views of gossip are counted
	// when nothing has announced a change.
	recountInterval = 500 * time.Millisecond
	// gossipLeaveTimeout bounds how long a member that stops takes to say so.
	gossipLeaveTimeout = 2 * time.Second
	// gossipLabelBytes is the length of the pool's label before hex.
	gossipLabelBytes = 8
)

// GossipConfig is membership in the pool of nodes and servers.
type GossipConfig struct {
	// BindAddress is "ip:port", tcp and udp.
	BindAddress string
	// AdvertiseAddress is the "ip:port" for others; empty: derived.
	AdvertiseAddress string
	// Seeds are "host:port" of servers.
	Seeds []string
}

// liveness is what one server knows of its nodes: sessions at first hand and by
// its peers, gossip by the votes of all servers. It implements nodelifecycle.Liveness.
type liveness struct {
	servers  int // of the cluster, this one among them
	name     string
	table    *session.Table
	sessions *session.Service
	exchange *session.Exchange
	pool     *gossip.Pool // nil without gossip
	feed     *changeFeed

	mu     sync.Mutex
	gossip map[string]gossipVerdict
}

// gossipVerdict is what the servers together hold of a node.
type gossipVerdict struct {
	state nodelifecycle.GossipState
	since time.Time
}

var _ nodelifecycle.Liveness = (*liveness)(nil)

// newLiveness makes the liveness layer of a server; its Run must run.
func newLiveness(config ServerConfig, identity *pki.Identity) (*liveness, error) {
	peers, err := sessionPeers(config, identity)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(peers))
	for i, p := range peers {
		names[i] = p.Name
	}
	l := &liveness{servers: len(peers) + 1, name: config.Name, feed: newChangeFeed(), gossip: map[string]gossipVerdict{}}
	l.table = session.NewTable(config.Name, names, l.feed.add)
	l.sessions = session.NewService(session.ServiceConfig{Table: l.table, Node: callingNode, Logger: config.Logger})
	l.exchange = session.NewExchange(session.ExchangeConfig{Table: l.table, Peers: peers, View: l.view, Logger: config.Logger})
	l.pool = joinGossip(config.Gossip, gossip.Config{
		Name: config.Name, Role: gossip.RoleServer, Key: config.Trust.GossipKey, Logger: config.Logger,
	})
	return l, nil
}

func sessionPeers(config ServerConfig, identity *pki.Identity) ([]session.Peer, error) {
	tlsConfig, err := identity.ClientConfig()
	if err != nil {
		return nil, err
	}
	reach := peerClient(tlsConfig)
	var peers []session.Peer
	for _, server := range config.InitialServers {
		if server.Name == config.Name {
			continue
		}
		client, url := reach(server.Name, server.Endpoint)
		peers = append(peers, session.Peer{Name: server.Name, Client: client, URL: url})
	}
	return peers, nil
}

// joinGossip becomes a member, if gossip is wanted. It is only a hint: without
// it, for instance because another server of this machine has the port,
// sessions go on to judge nodes.
func joinGossip(g *GossipConfig, config gossip.Config) *gossip.Pool {
	if g == nil {
		return nil
	}
	config.BindAddr, config.AdvertiseAddr = g.BindAddress, g.AdvertiseAddress
	config.Seeds = func() []string { return g.Seeds }
	config.Label = gossipLabel(config.Key)
	pool, err := gossip.Join(config)
	if err != nil {
		config.Logger.Warn("gossip is off: nodes are judged by sessions alone", "address", g.BindAddress, "error", err)
		return nil
	}
	return pool
}

// gossipLabel names the cluster among others on the network, by what only its
// members know.
func gossipLabel(key []byte) string {
	sum := sha256.Sum256(append([]byte("setpoint gossip label "), key...))
	return hex.EncodeToString(sum[:gossipLabelBytes])
}

// Services are where agents hold sessions and servers tell each other of them.
func (l *liveness) Services() []apiserver.Service {
	sessionPrefix, sessions := l.sessions.Handler()
	digestPrefix, digests := l.exchange.Handler()
	return []apiserver.Service{
		{Prefix: sessionPrefix, Handler: sessions, Allow: isNode},
		{Prefix: digestPrefix, Handler: digests, Allow: isServer},
	}
}

func isNode(u user.Info) bool { return slices.Contains(u.GetGroups(), pki.GroupNodes) }

// callingNode is the node whose certificate the request came with.
func callingNode(ctx context.Context) (string, bool) {
	u, ok := request.UserFrom(ctx)
	if !ok || !isNode(u) {
		return "", false
	}
	return strings.CutPrefix(u.GetName(), pki.NodeUser(""))
}

// Run watches nodes until ctx ends, then leaves the pool.
func (l *liveness) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	run := func(f func(context.Context) error) { group.Go(func() error { return f(groupCtx) }) }
	run(l.table.Run)
	run(l.sessions.Run)
	run(l.exchange.Run)
	run(l.feed.run)
	if l.pool != nil {
		run(l.pool.Run)
		run(l.count)
	}
	err := group.Wait()
	if l.pool != nil {
		if leaveErr := l.pool.Leave(gossipLeaveTimeout); err == nil {
			err = leaveErr
		}
	}
	return err
}

// Node implements nodelifecycle.Liveness.
func (l *liveness) Node(name string) nodelifecycle.Signal {
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
	session.ClosedCleanly: nodelifecycle.SessionClosedCleanly,
}

// Changes implements nodelifecycle.Liveness.
func (l *liveness) Changes() <-chan string { return l.feed.out }

// view is this server's gossip as its peers get to know it.
func (l *liveness) view() session.View {
	if l.pool == nil {
		return session.View{}
	}
	members := l.pool.Members()
	view := session.View{Suspended: distrusts(members, l.table.Entries(), time.Now())}
	for _, m := range members {
		if m.Role == gossip.RoleNode && m.State != gossip.NotMember {
			view.Opinions = append(view.Opinions, session.Opinion{Node: m.Name, Dead: m.State == gossip.Dead})
		}
	}
	return view
}

// count counts the votes again whenever some view may have changed.
func (l *liveness) count(ctx context.Context) error {
	ticker := time.NewTicker(recountInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-l.pool.Changes():
			l.table.Tell()
		}
		views := l.table.Views()
		own := l.view()
		views[l.name] = own
		l.adopt(tally(views, l.servers, own.Suspended), time.Now())
	}
}

// adopt takes a new result and reports what it changes.
func (l *liveness) adopt(result map[string]nodelifecycle.GossipState, now time.Time) {
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

// startLiveness joins the other servers and nodes; buildAPI mounts its services.
func (s *Server) startLiveness(ctx context.Context, self pki.Server) (err error) {
	config := s.config
	if g := config.Gossip; g != nil && g.AdvertiseAddress == "" {
		advertised := *g
		advertised.AdvertiseAddress = advertiseGossip(ctx, self.Endpoint, g.BindAddress, config.Logger)
		config.Gossip = &advertised
	}
	if s.liveness, err = newLiveness(config, s.identity); err != nil {
		return fmt.Errorf("node liveness: %w", err)
	}
	s.wg.Go(func() {
		if err := s.liveness.Run(ctx); err != nil {
			s.config.Logger.Warn("node liveness ended badly", "error", err)
		}
	})
	return nil
}

// advertiseGossip is the server's own address, by which everybody reaches it,
// with gossip's port; empty when it is not known or a loopback that others lack.
func advertiseGossip(ctx context.Context, endpoint, bind string, logger *slog.Logger) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return ""
	}
	bindHost, port, err := net.SplitHostPort(bind)
	if err != nil || bindHost != "" && !net.ParseIP(bindHost).IsUnspecified() || port == "0" {
		return ""
	}
	if net.ParseIP(host) != nil {
		return net.JoinHostPort(host, port)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil || len(addresses) == 0 || addresses[0].IsLoopback() {
		logger.Debug("gossip advertises the machine's private address", "host", host, "error", err)
		return ""
	}
	return net.JoinHostPort(addresses[0].Unmap().String(), port)
}

// nodeLiveness is what the node lifecycle controller asks.
func (s *Server) nodeLiveness() nodelifecycle.Liveness {
	if s.liveness == nil {
		return nil // not a nil *liveness in an interface
	}
	return s.liveness
}

// gossipMembers are the members of the pool as this server sees them.
func (s *Server) gossipMembers() []GossipMember {
	if s.liveness == nil || s.liveness.pool == nil {
		return nil
	}
	var members []GossipMember
	for _, m := range s.liveness.pool.Members() {
		members = append(members, GossipMember{Name: m.Name, Role: string(m.Role), State: m.State.String()})
	}
	return members
}
