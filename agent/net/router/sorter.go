package router

import (
	"context"
	"errors"
	"net"
	"sync"
)

// sorter is the listener of a port that speaks TLS. Connections for listeners that copy them end in it; all others come out of Accept,
// as if nobody had read from them.
type sorter struct {
	net.Listener
	router *router
	at     int
	// sorted has no buffer: a connection waits until it is accepted, or the listener closes.
	sorted chan accepted
	closed context.Context
	close  context.CancelFunc
	// inside are the goroutines of connections that have not come out.
	inside sync.WaitGroup
	cut    context.CancelFunc
}

// accepted is what a listener's Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// newSorter takes over the listener. Its goroutines end by drain, after Close.
func newSorter(inner net.Listener, r *router, at int) *sorter {
	s := &sorter{Listener: inner, router: r, at: at, sorted: make(chan accepted)}
	s.closed, s.close = context.WithCancel(context.Background())
	live, cut := context.WithCancel(context.Background())
	s.cut = cut
	s.inside.Go(func() { s.run(live) })
	return s
}

func (s *sorter) run(live context.Context) {
	for {
		conn, err := s.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.hand(nil, err) // who accepts waits before it does so again
		case !s.router.streams(s.at):
			s.hand(conn, nil)
		default:
			s.inside.Go(func() { s.sort(live, conn) })
		}
	}
}

// sort reads for whom a connection is, and copies it or hands it on.
func (s *sorter) sort(live context.Context, conn net.Conn) {
	stop := context.AfterFunc(live, func() { _ = conn.Close() })
	defer stop()
	client, name, err := readServerName(conn)
	if err != nil {
		s.router.Logger.Debug("a connection does not begin as TLS does", "client", conn.RemoteAddr().String(), "err", err)
		_ = conn.Close()
		return
	}
	if to := s.router.stream(s.at, name); to.copied {
		s.router.copyStream(live, client, to, s.at)
		return
	}
	if stop() {
		s.hand(client, nil)
	}
}

func (s *sorter) hand(conn net.Conn, err error) {
	select {
	case s.sorted <- accepted{conn, err}:
	case <-s.closed.Done():
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// Accept implements net.Listener.
func (s *sorter) Accept() (net.Conn, error) {
	select {
	case a := <-s.sorted:
		return a.conn, a.err
	case <-s.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. What is copied goes on.
func (s *sorter) Close() error {
	s.close()
	return s.Listener.Close()
}

// drain returns when nothing is copied any more; what is when ctx ends is cut off.
func (s *sorter) drain(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	s.inside.Wait()
	s.cut()
}
