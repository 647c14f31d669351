package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"github.com/vishvananda/netns"
)

const dialTimeMax = 10 * time.Second

// Splice copies both ways; the pod's end of stream ends it, the client's only closes its half.
func Splice(conn net.Conn, stream io.ReadWriteCloser) error {
	go func() {
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the pod may have closed already
		}
	}()
	_, err := io.Copy(stream, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, stream.Close())
}

// DialIn opens a socket from inside the network namespace of a process; afterwards the socket works from anywhere.
func DialIn(ctx context.Context, pid int, port int32) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 1)
	go func() {
		// The thread is spoilt and never unlocked: it dies with this goroutine.
		runtime.LockOSThread()
		namespace, err := netns.GetFromPid(pid)
		if err == nil {
			defer namespace.Close()
			err = netns.Set(namespace)
		}
		if err != nil {
			results <- result{err: err}
			return
		}
		conn, err := Dial(ctx, port)
		results <- result{conn, err}
	}()
	got := <-results
	return got.conn, got.err
}

// Dial opens a socket to a port of loopback. It uses one address only: a second one would be dialled from another goroutine, outside the
// namespace.
func Dial(ctx context.Context, port int32) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeMax, FallbackDelay: -1}
	return dialer.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}
