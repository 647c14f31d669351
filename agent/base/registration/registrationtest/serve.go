package registrationtest

import (
	"net"
	"testing"

	"google.golang.org/grpc"
)

// Serve answers on a socket, as register says, until stop is called or the test ends. The socket is removed then.
func Serve(t testing.TB, socket string, register func(*grpc.Server)) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	stop = func() { server.Stop(); <-done }
	t.Cleanup(stop)
	return stop
}
