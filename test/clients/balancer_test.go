package clients

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// balance is the load balancer that clients with one address need: it hands each
// connection to the next server that takes it, and knows nothing of what is in it.
func balance(t *testing.T, servers map[string]string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var addresses []string
	for _, a := range servers {
		addresses = append(addresses, a)
	}
	var next atomic.Int64
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(from, addresses, int(next.Add(1)))
		}
	}()
	return listener.Addr().String()
}

// forward joins a connection with the first server that can be reached, from the nth on.
func forward(from net.Conn, addresses []string, n int) {
	defer from.Close()
	for i := range addresses {
		to, err := net.Dial("tcp", addresses[(n+i)%len(addresses)])
		if err != nil {
			continue
		}
		defer to.Close()
		go func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		return
	}
}
