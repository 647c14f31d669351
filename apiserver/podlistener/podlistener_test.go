package podlistener

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// fakeConn comes from somewhere.
type fakeConn struct {
	net.Conn
	from   string
	closed *bool
}

func (c fakeConn) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.2:6443"))
}

func (c fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
}

func (c fakeConn) Close() error { *c.closed = true; return nil }

// queue accepts what is in it.
type queue struct {
	net.Listener
	conns []net.Conn
}

var errEmpty = errors.New("nobody comes")

func (q *queue) Accept() (net.Conn, error) {
	if len(q.conns) == 0 {
		return nil, errEmpty
	}
	next := q.conns[0]
	q.conns = q.conns[1:]
	return next, nil
}

func TestOnlyPodsOfThisMachineComeIn(t *testing.T) {
	for from, want := range map[string]bool{
		"10.42.0.7:1": true, "192.0.2.2:1": true, "[::ffff:10.42.3.1]:1": true,
		"192.0.2.3:1": false, "10.43.0.7:1": false, "127.0.0.1:1": false,
	} {
		t.Run(from, func(t *testing.T) {
			closed := false
			l := &Listener{Listener: &queue{conns: []net.Conn{fakeConn{from: from, closed: &closed}}}}
			l.Admit(netip.MustParsePrefix("10.42.0.0/16"))
			conn, err := l.Accept()
			if in := err == nil && conn != nil; in != want || closed == want {
				t.Errorf("came in: %v, turned away: %v", in, closed)
			}
		})
	}
}
