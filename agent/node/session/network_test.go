package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
)

var errUnreachable = errors.New("unreachable")

// network is servers and agents joined by in-memory connections that can be
// broken (both sides notice) or muted (nobody does).
type network struct {
	t         *testing.T
	mu        sync.Mutex
	listeners map[string]*listener
	links     map[*link]struct{}
	apart     map[[2]string]bool
	gone      map[string]bool     // dial no more
	told      map[string][]string // agents: where the servers gossip
	servers   map[string][]string // agents and servers: which servers they know
	rings     map[string]*ringed  // agents and servers that hold one; set before they start
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, listeners: map[string]*listener{}, links: map[*link]struct{}{}, apart: map[[2]string]bool{}, gone: map[string]bool{}, told: map[string][]string{}, servers: map[string][]string{}}
}

// link is one connection, seen from either end.
type link struct {
	net.Conn
	network *network
	ends    [2]string
}

// Write loses what is written between hosts that are apart.
func (l *link) Write(b []byte) (int, error) {
	if l.network.areApart(l.ends) {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (n *network) areApart(ends [2]string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.apart[ends] || n.apart[[2]string{ends[1], ends[0]}]
}

// mute loses everything between two hosts from now on.
func (n *network) mute(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart[[2]string{a, b}] = true
}

// unmute undoes every mute.
func (n *network) unmute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.apart)
}

// crash breaks a host's connections as the death of its process would.
func (n *network) crash(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.listeners, host)
	for l := range n.links {
		if l.ends[0] == host || l.ends[1] == host {
			_ = l.Conn.Close()
		}
	}
}

func (n *network) client(host string) *http.Client {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		to, _, _ := net.SplitHostPort(address)
		return n.dial(ctx, host, to)
	}}
	n.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: as{host, transport}}
}

// as is what a client certificate would say.
type as struct {
	host string
	next http.RoundTripper
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Test-Host", a.host)
	return a.next.RoundTrip(r)
}

type hostKey struct{}

func callingHost(ctx context.Context) (string, bool) {
	host, _ := ctx.Value(hostKey{}).(string)
	return host, host != "stranger"
}

func (n *network) dial(ctx context.Context, from, to string) (net.Conn, error) {
	n.mu.Lock()
	target, gone := n.listeners[to], n.gone[from]
	n.mu.Unlock()
	if target == nil || gone {
		return nil, errUnreachable
	}
	if n.areApart([2]string{from, to}) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a, b := net.Pipe()
	near := &link{a, n, [2]string{from, to}}
	far := &link{b, n, [2]string{from, to}}
	n.mu.Lock()
	n.links[near], n.links[far] = struct{}{}, struct{}{}
	n.mu.Unlock()
	select {
	case target.conns <- far:
		return near, nil
	case <-target.done:
		return nil, errUnreachable
	}
}

// listener implements net.Listener.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// host is one server.
type host struct {
	*Table
	name    string
	network *network
	service *Service
	// led ends when lose is called: the server has no leader any more.
	led     context.Context
	lose    context.CancelFunc
	cancel  context.CancelFunc
	http    *http.Server
	running sync.WaitGroup
}

// server starts one of the servers named.
func (n *network) server(name string, all ...string) *host {
	h := &host{name: name, network: n}
	logger := slog.New(slog.NewTextHandler(n.t.Output(), nil)).With("server", name)
	h.Table = NewTable(name, nil)
	h.among(all...)
	h.led, h.lose = context.WithCancel(n.t.Context())
	var ring func(string) (*Ring, RingHeld)
	if r := n.rings[name]; r != nil {
		ring = r.tell
	}
	service := NewService(ServiceConfig{Ring: ring, Table: h.Table, Led: func() context.Context { return h.led }, Node: callingHost, Logger: logger, GossipAddresses: func() []string {
		return append(h.GossipAddresses(), name+":7946")
	}, Servers: func() []string {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.servers[name]
	}})
	h.service = service
	exchange := NewExchange(ExchangeConfig{Table: h.Table, Logger: logger, View: func() View {
		return View{Opinions: []Opinion{{Node: "seen-by-" + name}}, Address: name + ":7946"}
	}})
	mux := http.NewServeMux()
	mux.Handle(service.Handler())
	mux.Handle(exchange.Handler())
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	h.http = &http.Server{Protocols: &protocols, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), hostKey{}, r.Header.Get("Test-Host"))))
	})}
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	n.listeners[name] = l
	delete(n.gone, name)
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(n.t.Context())
	h.cancel = cancel
	h.running.Go(func() { _ = h.http.Serve(l) })
	for _, run := range []func(context.Context) error{h.Table.Run, service.Run, exchange.Run} {
		h.running.Go(func() { _ = run(ctx) })
	}
	n.t.Cleanup(h.kill)
	return h
}

// among tells a server who the servers are.
func (h *host) among(all ...string) {
	servers := Servers{Votes: slices.Contains(all, h.name)}
	for _, other := range all {
		if other != h.name {
			servers.Peers = append(servers.Peers, Peer{Name: other, Voter: true, Client: h.network.client(h.name), URL: fmt.Sprintf("http://%s:1", other)})
		}
	}
	h.SetServers(servers)
}

// tells makes a server tell its agents of all servers; otherwise they know those that the test has named.
func (h *host) tells(all ...string) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	h.network.servers[h.name] = all
}

// kill ends a server as its process' death would.
func (h *host) kill() {
	h.network.mu.Lock()
	h.network.gone[h.name] = true
	h.network.mu.Unlock()
	h.network.crash(h.name)
	_ = h.http.Close()
	h.cancel()
	h.running.Wait()
}

// agent runs a node's client until stop.
func (n *network) agent(name string, servers ...string) (stop func()) {
	ctx, cancel := context.WithCancel(n.t.Context())
	c := &Client{HTTP: n.client(name), Logger: slog.New(slog.NewTextHandler(n.t.Output(), nil)).With("agent", name)}
	c.GossipAddresses = func(addresses []string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.told[name] = addresses
	}
	if r := n.rings[name]; r != nil {
		c.RingHeld, c.Ring = r.held, r.take
	}
	c.Told = func(_ string, servers []string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(servers) > 0 {
			n.servers[name] = servers
		}
	}
	c.Told("", servers)
	c.Servers = func() (urls []string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, s := range n.servers[name] {
			urls = append(urls, fmt.Sprintf("http://%s:1", s))
		}
		return urls
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			n.t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	n.t.Cleanup(stop)
	return stop
}
