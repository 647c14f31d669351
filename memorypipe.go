package setpoint

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// connBytes is how much one end of a connection may have sent that the other has not read.
const connBytes = 64 << 10

// timers is held while a connection in memory may start a timer that runs at once: when it is made, and when a deadline is set that
// has passed, as TLS and HTTP servers do when they close. In a bubble two of these at a time make the race detector crash
// (golang/go#78156).
var timers sync.Mutex

// memoryEnd is one end of a connection in memory.
type memoryEnd struct{ net.Conn }

// memoryPipe makes both ends. bufconn makes them by a listener only, so each connection has one.
func memoryPipe() (dialled, accepted net.Conn, err error) {
	timers.Lock()
	defer timers.Unlock()
	listener := bufconn.Listen(connBytes)
	defer listener.Close()
	other := make(chan net.Conn, 1)
	go func() {
		conn, _ := listener.Accept() // it fails only if the dial does
		other <- conn
	}()
	dialled, err = listener.DialContext(context.Background())
	if err != nil {
		return nil, nil, err
	}
	return memoryEnd{dialled}, memoryEnd{<-other}, nil
}

// SetDeadline implements net.Conn.
func (e memoryEnd) SetDeadline(t time.Time) error {
	timers.Lock()
	defer timers.Unlock()
	return e.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (e memoryEnd) SetReadDeadline(t time.Time) error {
	timers.Lock()
	defer timers.Unlock()
	return e.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (e memoryEnd) SetWriteDeadline(t time.Time) error {
	timers.Lock()
	defer timers.Unlock()
	return e.Conn.SetWriteDeadline(t)
}

// memoryListener is where a replica is reached.
type memoryListener struct {
	at     memoryAddress
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func listenAt(address string) *memoryListener {
	l := &memoryListener{at: memoryAddress(address), conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// dial returns once the connection was accepted.
func (l *memoryListener) dial(ctx context.Context) (net.Conn, error) {
	dialled, accepted, err := memoryPipe()
	if err != nil {
		return nil, err
	}
	select {
	case l.conns <- accepted:
		return dialled, nil
	case <-l.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, dialled.Close(), accepted.Close())
}

// Accept implements net.Listener.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *memoryListener) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *memoryListener) Addr() net.Addr { return l.at }

// memoryAddress is host:port.
type memoryAddress string

// Network implements net.Addr.
func (memoryAddress) Network() string { return "memory" }

func (a memoryAddress) String() string { return string(a) }
