package router

import (
	"context"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// limited is a listener with a number of connections at most; others wait to be accepted. Unlike those of netutil its connections can
// end in one direction alone, which streams need.
type limited struct {
	net.Listener
	slots  chan struct{}
	open   prometheus.Gauge
	closed context.Context
	close  context.CancelFunc
}

func newLimited(inner net.Listener, limit int, open prometheus.Gauge) *limited {
	l := &limited{Listener: inner, slots: make(chan struct{}, limit), open: open}
	l.closed, l.close = context.WithCancel(context.Background())
	return l
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	l.open.Inc()
	release := sync.OnceFunc(func() {
		l.open.Dec()
		<-l.slots
	})
	return &counted{conn, release}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.close()
	return l.Listener.Close()
}

// counted is a connection of a limited listener.
type counted struct {
	net.Conn
	release func()
}

// CloseWrite ends the direction to the client.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
