package strangers

import (
	"container/list"
	"context"
	"errors"
	"net"
	"sync"

	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// maxStrangers bounds connections whose clients have not authenticated.
	maxStrangers = 1000
	// filesShare is the part of the files that the process may open that they have: one in so many.
	filesShare = 4
)

var errNoHalf = errors.New("strangers: this connection cannot end in one direction alone")

// Limit is how many unauthenticated connections this process can keep: a quarter of its file descriptors, 1,000
// at most.
func Limit() int { return shares.OfFiles(maxStrangers, filesShare) }

// Door accepts connections. Its listeners share the limit. It is safe for concurrent use.
type Door struct {
	limits shares.Limits

	mu        sync.Mutex
	strangers *list.List            // of *conn, the longest here first
	sources   map[string]*list.List // the same by where they come from; none is empty
}

// NewDoor keeps at most limit unauthenticated connections.
func NewDoor(limit int) *Door {
	return &Door{limits: shares.Limits{All: limit}, strangers: list.New(), sources: map[string]*list.List{}}
}

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
	return l.door.Enter(c), nil
}

// conn is a connection that came in through a door.
type conn struct {
	net.Conn
	door   *Door
	source string
	// place and own are where it stands among all strangers and among those of its source; nil: it is none, or gone. The door guards them.
	place, own *list.Element
	closed     bool // guarded by the door, too
}

// Enter lets a connection in as a stranger, and closes another one if there are too many: the oldest of the same source if that has its
// share, or else the oldest of all.
func (d *Door) Enter(c net.Conn) net.Conn {
	entered := &conn{Conn: c, door: d, source: sourceOf(c)}
	d.admit(entered)
	return entered
}

// admit makes a connection a stranger, unless it is one or has ended.
func (d *Door) admit(c *conn) {
	d.mu.Lock()
	if c.place != nil || c.closed {
		d.mu.Unlock()
		return
	}
	first := d.tooMany(c.source)
	if first != nil {
		d.leave(first)
	}
	d.add(c)
	d.mu.Unlock()
	if first != nil {
		_ = first.Conn.Close()
	}
}

// tooMany is who has to go before another one comes from the source, or nil. It is called with the lock held, as those below are.
func (d *Door) tooMany(source string) *conn {
	own, has := d.sources[source], 0
	if own != nil {
		has = own.Len()
	}
	switch {
	case d.limits.Fits(has, d.strangers.Len(), 1):
		return nil
	case own != nil:
		return own.Front().Value.(*conn)
	default:
		return d.strangers.Front().Value.(*conn)
	}
}

func (d *Door) add(c *conn) {
	c.place = d.strangers.PushBack(c)
	own := d.sources[c.source]
	if own == nil {
		own = list.New()
		d.sources[c.source] = own
	}
	c.own = own.PushBack(c)
}

func (d *Door) leave(c *conn) {
	if c.place == nil {
		return
	}
	own := d.sources[c.source]
	d.strangers.Remove(c.place)
	own.Remove(c.own)
	if own.Len() == 0 {
		delete(d.sources, c.source)
	}
	c.place, c.own = nil, nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.door.mu.Lock()
	c.closed = true
	c.door.leave(c)
	c.door.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends one direction, if the connection knows how.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errNoHalf
}

// known takes the connection from the strangers.
func (c *conn) known() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.door.leave(c)
}

// Known marks the client of a connection as authenticated, so that the connection does not count any more. The
// argument may be a connection over one from a Door that tells it (NetConn), as TLS does; others are ignored.
func Known(c net.Conn) {
	if entered := find(c); entered != nil {
		entered.known()
	}
}

// connectionKey finds the connection of a request.
type connectionKey struct{}

// WithConnection is for http.Server.ConnContext: by it KnownIn finds the connection of a request.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// KnownIn is Known for the connection of a request, which the context is of.
func KnownIn(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey{}).(net.Conn); ok {
		Known(c)
	}
}

// Forgotten makes the client of a connection a stranger again, the newest one.
func Forgotten(c net.Conn) {
	if entered := find(c); entered != nil {
		entered.door.admit(entered)
	}
}

// find is the connection of a Door that another one is over, or nil.
func find(c net.Conn) *conn {
	for {
		switch over := c.(type) {
		case *conn:
			return over
		case interface{ NetConn() net.Conn }:
			c = over.NetConn()
		default:
			return nil
		}
	}
}
