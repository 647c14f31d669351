package replicas

import (
	"cmp"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// conn is one server's end of a connection.
type conn struct {
	network *network
	out     link
	// number counts the connections of the link that it was opened over; side is 1 at the end that was called.
	number, side uint64
	peer         *conn

	// sending keeps the order of what is written here.
	sending sync.Mutex
	random  *rand.Rand
	arrives time.Time

	mu sync.Mutex
	// inbox arrived and was not read; ended: nothing more arrives.
	inbox         []byte
	ended, closed bool
	readBy, until time.Time
	// changed is closed, and made anew, when one of these changes.
	changed chan struct{}
}

var _ net.Conn = (*conn)(nil)

// inOrder sorts connections by their links and numbers.
func inOrder(conns []*conn) []*conn {
	slices.SortFunc(conns, func(a, b *conn) int {
		links := cmp.Or(cmp.Compare(a.out.from, b.out.from), cmp.Compare(a.out.to, b.out.to))
		return cmp.Or(links, cmp.Compare(a.number, b.number), cmp.Compare(a.side, b.side))
	})
	return conns
}

func (c *conn) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		n, by, changed, err := c.take(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if by.IsZero() {
			<-changed
			continue
		}
		late := time.NewTimer(time.Until(by))
		select {
		case <-changed:
		case <-late.C:
		}
		late.Stop()
	}
}

// take reads what is there, or returns what to wait for and until when.
func (c *conn) take(b []byte) (n int, by time.Time, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, by, nil, net.ErrClosed
	case !c.readBy.IsZero() && !time.Now().Before(c.readBy):
		return 0, by, nil, os.ErrDeadlineExceeded
	case len(c.inbox) > 0:
		n = copy(b, c.inbox)
		c.inbox = c.inbox[n:]
		return n, by, nil, nil
	case c.ended:
		return 0, by, nil, io.EOF
	}
	return 0, c.readBy, c.changed, nil
}

// Write implements net.Conn. It never waits; what is written over a cut link is lost without a word.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	closed, ended, late := c.closed, c.ended, !c.until.IsZero() && !time.Now().Before(c.until)
	c.mu.Unlock()
	switch {
	case closed:
		return 0, net.ErrClosed
	case ended:
		return 0, syscall.EPIPE
	case late:
		return 0, os.ErrDeadlineExceeded
	case c.network.isCut(c.out):
		return len(b), nil
	}
	piece := slices.Clone(b)
	c.send("piece", piece, func() { c.peer.inbox = append(c.peer.inbox, piece...) })
	return len(b), nil
}

// send lets something arrive at the other end, behind all that was sent before.
func (c *conn) send(what string, piece []byte, f func()) {
	c.sending.Lock()
	defer c.sending.Unlock()
	at := time.Now().Add(c.network.delay(c.out, c.random))
	if !at.After(c.arrives) {
		at = c.arrives.Add(time.Nanosecond)
	}
	c.arrives = at
	c.network.events.add(at, func(note note) {
		c.network.arrive(c.out, func() {
			if c.network.isCut(c.out) {
				return
			}
			note("%s %s>%s %d %x", what, c.out.from, c.out.to, c.number, piece)
			c.peer.change(f)
		})
	})
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.network.mu.Lock()
	_, open := c.network.conns[c]
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	if !open {
		return nil
	}
	c.change(func() { c.closed = true })
	c.send("end", nil, func() { c.peer.ended = true })
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.change(func() { c.readBy, c.until = t, t })
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.change(func() { c.readBy = t })
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.change(func() { c.until = t })
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return &net.UnixAddr{Name: c.out.from, Net: "simulated"} }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: c.out.to, Net: "simulated"} }

// listener lets an HTTP server accept connections of the network.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newListener() *listener { return &listener{conns: make(chan net.Conn), done: make(chan struct{})} }

func (l *listener) serve(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "listener", Net: "simulated"} }
