package replicas

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// delayMin and delayMax bound how long a piece is under way on a quiet link.
	delayMin, delayMax = 50 * time.Microsecond, 2 * time.Millisecond
	// lateOnce is how many pieces there are for one that is late, by up to lateMax.
	lateOnce, lateMax = 40, 80 * time.Millisecond
)

// link is one direction between two servers.
type link struct{ from, to string }

// network carries what servers write, in pieces, each with a delay of its own. The pieces of a connection stay in order.
type network struct {
	seed   uint64
	events *events

	mu    sync.Mutex
	conns map[*conn]struct{}
	// opened counts the connections over a link: each has delays of its own, whatever others do meanwhile.
	opened map[link]uint64
	accept map[endpoint]func(net.Conn)
	cut    map[link]bool
	// slow links take so much longer.
	slow map[link]time.Duration
	// mended is closed when a link is.
	mended chan struct{}
	sent   int
	holder holder
}

// endpoint is a listener of a server.
type endpoint struct{ server, protocol string }

func newNetwork(seed uint64, e *events) *network {
	return &network{
		seed: seed, events: e, conns: map[*conn]struct{}{}, opened: map[link]uint64{}, accept: map[endpoint]func(net.Conn){},
		cut: map[link]bool{}, slow: map[link]time.Duration{}, mended: make(chan struct{}), holder: holder{paused: map[string]bool{}},
	}
}

func (n *network) listen(server, protocol string, accept func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accept[endpoint{server, protocol}] = accept
}

// unplug takes a server off the network. What it had open ends at once on its side, and for the others when the news arrive.
func (n *network) unplug(server string) {
	n.mu.Lock()
	delete(n.accept, endpoint{server, "raft"})
	delete(n.accept, endpoint{server, "http"})
	n.mu.Unlock()
	n.reset(func(l link) bool { return l.from == server })
}

// setCut cuts or mends one direction. A connection that lost something is reset when the link heals.
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

// setSlow makes one direction slower, 0 ends it.
func (n *network) setSlow(l link, by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[l] = by
}

// reset ends connections by their links, those that were opened first at first.
func (n *network) reset(affected func(link) bool) {
	n.mu.Lock()
	var closing []*conn
	for c := range n.conns {
		if affected(c.out) {
			closing = append(closing, c)
		}
	}
	n.mu.Unlock()
	for _, c := range inOrder(closing) {
		c.Close()
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

// dial connects two servers. Over a link that is cut it tries until ctx ends.
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
	if accept == nil {
		return nil, &net.OpError{Op: "dial", Net: protocol, Err: fmt.Errorf("%s is down: %w", to, syscall.ECONNREFUSED)}
	}
	n.opened[out]++
	near, far := n.end(out, n.opened[out], 0), n.end(back, n.opened[out], 1)
	near.peer, far.peer = far, near
	go accept(far)
	return near, nil
}

// end makes one end of a connection; the caller holds mu.
func (n *network) end(out link, number, side uint64) *conn {
	h := fnv.New64a()
	fmt.Fprint(h, out.from, out.to, number, side)
	c := &conn{network: n, out: out, number: number, side: side, changed: make(chan struct{})}
	c.random = rand.New(rand.NewPCG(n.seed, h.Sum64()))
	n.conns[c] = struct{}{}
	return c
}

// delay is how long a piece is under way over a link.
func (n *network) delay(l link, random *rand.Rand) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent++
	d := delayMin + time.Duration(random.Int64N(int64(delayMax-delayMin)))
	if random.IntN(lateOnce) == 0 {
		d += time.Duration(random.Int64N(int64(lateMax)))
	}
	return d + n.slow[l]
}

func (n *network) isCut(l link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[l]
}
