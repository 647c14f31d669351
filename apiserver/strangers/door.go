package strangers

import (
	"container/list"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
)

const (
	// maxStrangers bounds connections whose clients have not authenticated.
	maxStrangers = 1000
	// filesShare is the part of the files that the process may open that they have: one in so many.
	filesShare = 4
)

// Limit is how many unauthenticated connections this process can keep: a quarter of its file descriptors, 1,000
// at most.
func Limit() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return maxStrangers
	}
	return int(min(maxStrangers, max(1, files.Cur/filesShare)))
}

// Door accepts connections. Its listeners share the limit. It is safe for concurrent use.
type Door struct {
	limit int

	mu        sync.Mutex
	strangers *list.List // of *conn, the longest here first
}

// NewDoor keeps at most limit unauthenticated connections.
func NewDoor(limit int) *Door { return &Door{limit: limit, strangers: list.New()} }

// Listener accepts the connections of another listener.
func (d *Door) Listener(l net.Listener) net.Listener { return listener{l, d} }

type listener struct {
	net.Listener
	door *Door
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.door.enter(c), nil
}

// conn is a connection that came in through a door.
type conn struct {
	net.Conn
	door  *Door
	place *list.Element // nil: no stranger, or gone; guarded by the door
}

func (d *Door) enter(c net.Conn) *conn {
	entered := &conn{Conn: c, door: d}
	d.mu.Lock()
	entered.place = d.strangers.PushBack(entered)
	var first *conn
	if d.strangers.Len() > d.limit {
		first = d.strangers.Front().Value.(*conn)
		d.leave(first)
	}
	d.mu.Unlock()
	if first != nil {
		_ = first.Conn.Close()
	}
	return entered
}

// leave is called with the lock held.
func (d *Door) leave(c *conn) {
	if c.place != nil {
		d.strangers.Remove(c.place)
		c.place = nil
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.known()
	return c.Conn.Close()
}

// known takes the connection from the strangers.
func (c *conn) known() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.door.leave(c)
}

// Known marks the client of a connection as authenticated, so that the connection does not count any more. The
// argument may be the TLS connection over one from a Door; other connections are ignored.
func Known(c net.Conn) {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	if entered, ok := c.(*conn); ok {
		entered.known()
	}
}
