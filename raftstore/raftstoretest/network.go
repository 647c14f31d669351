package raftstoretest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// network joins servers by pipes. A link that is cut swallows what is sent over
// it, as a network does: nobody is told. When it heals, connections that lost
// something are reset.
type network struct {
	mu  sync.Mutex
	cut map[link]bool
	// refused links take no new connection.
	refused map[link]bool
	// held links deliver nothing until their channel is closed.
	held  map[link]chan struct{}
	conns map[*pipeEnd]struct{}
	// accept takes the far end of a new connection, by server and protocol.
	accept map[endpoint]func(net.Conn)
	// mended is closed when some link is.
	mended chan struct{}
	// written counts the writes of all ends.
	written atomic.Int64
}

// link is one direction between two servers.
type link struct{ from, to string }

// endpoint is a listener of a server.
type endpoint struct{ server, protocol string }

func newNetwork() *network {
	return &network{
		cut: map[link]bool{}, refused: map[link]bool{}, held: map[link]chan struct{}{}, conns: map[*pipeEnd]struct{}{},
		accept: map[endpoint]func(net.Conn){}, mended: make(chan struct{}),
	}
}

// listen makes a server reachable; accept gets connections on its own goroutine.
func (n *network) listen(server, protocol string, accept func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accept[endpoint{server, protocol}] = accept
}

// unplug takes a server off the network and resets its connections.
func (n *network) unplug(server string) {
	n.mu.Lock()
	for e := range n.accept {
		if e.server == server {
			delete(n.accept, e)
		}
	}
	n.mu.Unlock()
	n.reset(func(l link) bool { return l.from == server || l.to == server })
}

// setCut cuts or mends one direction.
func (n *network) setCut(l link, cut bool) {
	n.mu.Lock()
	was := n.cut[l]
	n.cut[l] = cut
	if was && !cut {
		close(n.mended)
		n.mended = make(chan struct{})
	}
	n.mu.Unlock()
	if was && !cut {
		n.reset(func(other link) bool { return other == l || other == link{l.to, l.from} })
	}
}

// refuse ends what one server has opened to another, and refuses it more.
func (n *network) refuse(l link) {
	n.mu.Lock()
	n.refused[l] = true
	n.mu.Unlock()
	n.reset(func(other link) bool { return other == l || other == link{l.to, l.from} })
}

// allow ends refuse.
func (n *network) allow(l link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.refused, l)
}

func (n *network) isCut(l link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[l]
}

// hold keeps back what is sent over a link from now on, until release.
func (n *network) hold(l link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held[l] == nil {
		n.held[l] = make(chan struct{})
	}
}

// release delivers what was kept back.
func (n *network) release(l link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held[l] != nil {
		close(n.held[l])
		delete(n.held, l)
	}
}

// delivery returns what to wait for before delivering over a link; nil: nothing.
func (n *network) delivery(l link) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held[l]
}

func (n *network) reset(affected func(link) bool) {
	n.mu.Lock()
	var closing []*pipeEnd
	for end := range n.conns {
		if affected(end.out) {
			closing = append(closing, end)
		}
	}
	n.mu.Unlock()
	for _, end := range closing {
		end.Close()
	}
}

// whole returns nil if both directions work, else what to wait for.
func (n *network) whole(l link) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[l] || n.cut[link{l.to, l.from}] {
		return n.mended
	}
	return nil
}

// dial connects two servers. Over a cut link it tries until ctx ends.
func (n *network) dial(ctx context.Context, from, to, protocol string) (net.Conn, error) {
	out, back := link{from, to}, link{to, from}
	for mended := n.whole(out); mended != nil; mended = n.whole(out) {
		select {
		case <-mended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	accept := n.accept[endpoint{to, protocol}]
	if accept == nil || n.refused[out] {
		return nil, &net.OpError{Op: "dial", Net: protocol, Err: fmt.Errorf("%s is down: %w", to, syscall.ECONNREFUSED)}
	}
	near, far := net.Pipe()
	nearEnd := &pipeEnd{Conn: near, network: n, out: out, closed: make(chan struct{})}
	farEnd := &pipeEnd{Conn: far, network: n, out: back, closed: make(chan struct{})}
	n.conns[nearEnd], n.conns[farEnd] = struct{}{}, struct{}{}
	go accept(farEnd)
	return nearEnd, nil
}

// pipeEnd is one server's end of a connection.
type pipeEnd struct {
	net.Conn
	network *network
	out     link
	once    sync.Once
	closed  chan struct{}
}

// Write implements net.Conn.
func (p *pipeEnd) Write(b []byte) (int, error) {
	p.network.written.Add(1)
	if p.network.isCut(p.out) {
		return len(b), nil
	}
	if released := p.network.delivery(p.out); released != nil {
		select {
		case <-released:
		case <-p.closed:
		}
	}
	return p.Conn.Write(b)
}

// Close implements net.Conn.
func (p *pipeEnd) Close() error {
	p.network.mu.Lock()
	delete(p.network.conns, p)
	p.network.mu.Unlock()
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}

// pipeListener lets an HTTP server accept connections of the network.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) serve(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
