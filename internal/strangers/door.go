package strangers

import (
	"container/list"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// maxStrangers bounds connections whose clients have not authenticated, maxTenants those of tenants.
	maxStrangers = 1000
	maxTenants   = 4000
	// filesShare is the part of the files that the process may open that each of these have: one in so many.
	filesShare = 4
	// handshakeBytes are what the handshake of TLS counts beside its own: it takes as long as several requests.
	handshakeBytes = 10 << 10
	// readBytes are what each read counts beside its own: it wakes somebody, however little it brings.
	readBytes = 100
	// youngBytes are for a handshake and a first request.
	youngBytes = 8 << 10
)

var errNoHalf = errors.New("strangers: this connection cannot end in one direction alone")

// Limit is how many unauthenticated connections this process can keep: a quarter of its file descriptors, 1,000
// at most.
func Limit() int { return shares.OfFiles(maxStrangers, filesShare) }

// TenantsLimit is how many connections of tenants this process can keep: a quarter of its file descriptors, 4,000 at most. One tenant has
// half of them.
func TenantsLimit() int { return shares.OfFiles(maxTenants, filesShare) }

// Door accepts connections. Its listeners share the limits. It is safe for concurrent use.
type Door struct {
	// Reads, if any, is told how many bytes came in, whose the connection is, and whether they are of its first youngBytes, before
	// anybody sees them: they are read when it returns. It is set before the first connection.
	Reads func(whose shares.Holder, bytes int, young bool)

	mu        sync.Mutex
	strangers *room // by where they come from
	tenants   *room // by their names; nil: they do not count
}

// NewDoor keeps at most limit unauthenticated connections.
func NewDoor(limit int) *Door { return &Door{strangers: newRoom(limit)} }

// NewSharedDoor keeps also at most so many connections of tenants, whose names it is told (KnownAs).
func NewSharedDoor(limit, tenants int) *Door {
	return &Door{strangers: newRoom(limit), tenants: newRoom(tenants)}
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

// conn is a connection that came in through a door. The door guards what it is now.
type conn struct {
	net.Conn
	door   *Door
	source string
	in     *room  // nil: it does not count, or is gone
	whose  string // there
	// place and own are where it stands in the room among all, and among those that are whose.
	place, own *list.Element
	closed     bool
	// holder is for whom it reads, and has how much it has read.
	holder atomic.Pointer[shares.Holder]
	has    int
}

// Enter lets a connection in as a stranger, and closes another one if there are too many: the oldest of the same source if that has its
// share, or else the oldest of all.
func (d *Door) Enter(c net.Conn) net.Conn {
	entered := &conn{Conn: c, door: d, source: sourceOf(c)}
	entered.readFor(shares.Stranger(entered.source))
	entered.move(d.strangers, entered.source)
	return entered
}

// move puts the connection into a room, and closes who has to go for it.
func (c *conn) move(to *room, whose string) {
	c.door.mu.Lock()
	if c.closed || c.in == to && c.whose == whose {
		c.door.mu.Unlock()
		return
	}
	c.leave()
	first := to.tooMany(whose)
	if first != nil {
		first.leave()
	}
	to.add(c, whose)
	c.door.mu.Unlock()
	if first != nil {
		_ = first.Conn.Close()
	}
}

func (c *conn) readFor(h shares.Holder) { c.holder.Store(&h) }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.door.Reads != nil && n > 0 {
		cost := n + readBytes
		if c.has == 0 {
			cost += handshakeBytes
		}
		c.has += n
		c.door.Reads(*c.holder.Load(), cost, c.has <= youngBytes)
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.door.mu.Lock()
	c.closed = true
	c.leave()
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

// Known marks the client of a connection as authenticated, so that the connection does not count any more. The
// argument may be a connection over one from a Door that tells it (NetConn), as TLS does; others are ignored.
func Known(c net.Conn) {
	if entered := find(c); entered != nil {
		entered.readFor(shares.Holder{Privileged: true})
		entered.door.mu.Lock()
		defer entered.door.mu.Unlock()
		entered.leave()
	}
}

// KnownAs is Known, but the connection of a tenant counts as his: if he has his share, the oldest of his is closed.
func KnownAs(c net.Conn, tenant shares.Holder) {
	switch entered := find(c); {
	case entered == nil:
	case tenant.Privileged || entered.door.tenants == nil:
		Known(c)
	default:
		entered.readFor(tenant)
		entered.move(entered.door.tenants, tenant.Name)
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
		entered.readFor(shares.Stranger(entered.source))
		entered.move(entered.door.strangers, entered.source)
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
