package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// acceptQueue is how many raft connections may wait to be taken up; more are
// closed, and their peers dial again.
const acceptQueue = 64

// dialLimit bounds one dial, less than a message may take: the host may have
// moved, and the next dial looks it up again.
const dialLimit = 2 * time.Second

var errStreamClosed = errors.New("raft stream layer closed")

// streamLayer carries raft over connections that others dial and accept for it:
// one listener serves raft and everything else.
type streamLayer struct {
	cfg      Config
	accepted chan net.Conn
	closed   chan struct{}

	mu    sync.Mutex
	conns map[*trackedConn]struct{}
	once  sync.Once
	// told is when a refusal was logged last, by member id.
	told map[string]time.Time
}

var _ raft.StreamLayer = (*streamLayer)(nil)

func newStreamLayer(cfg Config) *streamLayer {
	if cfg.Introduce == nil {
		cfg.Introduce = func(to string) Greeting { return Greeting{To: to, From: cfg.ID} }
		cfg.Meet = func(Greeting) error { return nil }
	}
	return &streamLayer{
		cfg:      cfg,
		accepted: make(chan net.Conn, acceptQueue), closed: make(chan struct{}),
		conns: map[*trackedConn]struct{}{}, told: map[string]time.Time{},
	}
}

// Accept implements net.Listener.
func (s *streamLayer) Accept() (net.Conn, error) {
	select {
	case conn := <-s.accepted:
		return conn, nil
	case <-s.closed:
		return nil, errStreamClosed
	}
}

// Close implements net.Listener.
func (s *streamLayer) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *streamLayer) Addr() net.Addr { return serverAddress(s.cfg.Address) }

type serverAddress string

func (serverAddress) Network() string  { return "tcp" }
func (a serverAddress) String() string { return string(a) }

// Dial implements raft.StreamLayer. A connection to the own server is a pipe: the
// lone voter sends itself one message, before anything may be listening.
func (s *streamLayer) Dial(id raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	if string(id) == s.cfg.ID {
		near, far := net.Pipe()
		go s.handle(far)
		return s.track(near), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(timeout, dialLimit))
	defer cancel()
	conn, err := s.call(ctx, string(id))
	if err != nil {
		return nil, err
	}
	return s.track(conn), nil
}

// handle gives raft a connection and waits until it is closed.
func (s *streamLayer) handle(conn net.Conn) {
	tracked := s.track(conn)
	select {
	case s.accepted <- tracked:
		<-tracked.done
	default:
		tracked.Close()
	}
}

// track makes sure that closeConns reaches the connection.
func (s *streamLayer) track(conn net.Conn) *trackedConn {
	tracked := &trackedConn{Conn: conn, stream: s, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		tracked.stream = nil
		tracked.Close()
		return tracked
	}
	s.conns[tracked] = struct{}{}
	return tracked
}

// closeConns closes all connections, in both directions: raft's own shutdown
// leaves them open. Later ones are closed at once.
func (s *streamLayer) closeConns() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for conn := range conns {
		conn.Close()
	}
}

// trackedConn tells when it is closed.
type trackedConn struct {
	net.Conn
	stream *streamLayer
	once   sync.Once
	done   chan struct{}
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		close(c.done)
		if c.stream != nil {
			c.stream.mu.Lock()
			delete(c.stream.conns, c)
			c.stream.mu.Unlock()
		}
	})
	return err
}
