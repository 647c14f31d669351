package setpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemoryListener: what one end says the other reads, and nobody waits for a listener that is closed or does not accept.
func TestMemoryListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenAt("127.0.0.1:6443")
		go func() {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}()
		conn, err := l.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); string(text) != "hello" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody accepts: %v", err)
		}
		_, _ = l.Close(), l.Close()
		if _, err := l.dial(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dialling: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accepting: %v", err)
		}
	})
}

// TestManyTimersAtOnce makes the race detector crash where timers of a bubble run beside each other (golang/go#78156).
func TestManyTimersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var users sync.WaitGroup
		for range 8 {
			users.Go(func() {
				for range 500 {
					a, b, err := memoryPipe()
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = a.SetDeadline(time.Now()), b.SetWriteDeadline(time.Now())
					_, _ = a.Close(), b.Close()
				}
			})
		}
		users.Wait()
	})
}
