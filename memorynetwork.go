package setpoint

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server"
)

// memoryNetwork connects the replicas of a cluster in memory. It waits for nothing but its users, so it works in a
// bubble of testing/synctest.
type memoryNetwork struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
	conns     map[*memoryConn]struct{}
}

// memoryConn is the dialling end of a connection between two addresses.
type memoryConn struct {
	net.Conn
	network  *memoryNetwork
	from, to string
}

// listenInMemory opens the replicas to each other; one that is alone needs no listener.
func (c *Cluster) listenInMemory() (listeners []net.Listener, servers []trust.Server) {
	c.network = &memoryNetwork{listeners: map[string]*memoryListener{}, conns: map[*memoryConn]struct{}{}}
	for i := range c.config.Replicas {
		servers = append(servers, trust.Server{Name: "server-" + strconv.Itoa(i+1), Endpoint: c.endpoint(i)})
		if c.config.Replicas == 1 {
			return []net.Listener{nil}, servers
		}
		listeners = append(listeners, c.network.listen(c.endpoint(i)))
	}
	return listeners, servers
}

// endpoint is what the i-th replica is called by the others: nobody listens there.
func (c *Cluster) endpoint(i int) string {
	return net.JoinHostPort(net.IPv4(127, 0, 0, byte(i+1)).String(), strconv.Itoa(server.DefaultPort))
}

func (n *memoryNetwork) listen(address string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = listenAt(address)
	return n.listeners[address]
}

// dialer is how the replica at an address reaches the others.
func (n *memoryNetwork) dialer(from string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		n.mu.Lock()
		listener := n.listeners[to]
		if n.listeners[from] == nil {
			listener = nil
		}
		n.mu.Unlock()
		refused := &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%s: %w", to, syscall.ECONNREFUSED)}
		if listener == nil {
			return nil, refused
		}
		conn, err := listener.dial(ctx)
		if err != nil {
			return nil, refused
		}
		end := &memoryConn{conn, n, from, to}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.listeners[to] != listener || n.listeners[from] == nil { // one has crashed meanwhile
			_ = conn.Close()
			return nil, refused
		}
		n.conns[end] = struct{}{}
		return end, nil
	}
}

// cut closes what a replica listens at and all its connections; nobody reaches it until it listens again.
func (n *memoryNetwork) cut(address string) {
	n.mu.Lock()
	listener := n.listeners[address]
	delete(n.listeners, address)
	var closing []net.Conn
	for conn := range n.conns {
		if conn.from == address || conn.to == address {
			closing = append(closing, conn)
		}
	}
	n.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
	for _, conn := range closing {
		_ = conn.Close()
	}
}

// Close implements net.Conn.
func (c *memoryConn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
