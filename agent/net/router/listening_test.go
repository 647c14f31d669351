package router

import (
	"context"
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAPortThatIsTaken is told, and so is one that is open.
func TestAPortThatIsTaken(t *testing.T) {
	site := newSite(t)
	program, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	taken := program.Addr().(*net.TCPAddr).Port
	told := make(chan error, 1)
	ask := func(port int) error {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			site.router.listen(ctx, port, false, func(_ int, err error) {
				select {
				case told <- err:
				default:
				}
			})
		}()
		defer func() {
			cancel()
			<-ended
		}()
		return <-told
	}
	if err := ask(taken); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("taken: %v", err)
	}
	if err := errors.Join(program.Close(), ask(taken)); err != nil {
		t.Errorf("free: %v", err)
	}
}
