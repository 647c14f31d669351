package gossip

import (
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/setpoint-io/setpoint/internal/strangers"
)

const (
	// streamsMax bounds the connections that others have opened to this member: members open one now and then, for some milliseconds, and
	// the library ends each after 10 s at the latest. Beyond it the oldest one goes, as package strangers says.
	streamsMax = 256
	// listenTries is how often a free port is looked for: the system chooses one for tcp, which may be taken for udp.
	listenTries = 10
)

// guarded is the library's transport with a door before its connections: whether a client has the key is only known later.
type guarded struct {
	*memberlist.NetTransport
	streams       chan net.Conn
	ending, ended chan struct{}
	shutdown      func() error
}

// newGuarded listens as the library would by itself, and tells the configuration the port.
func newGuarded(c *memberlist.Config) (*guarded, error) {
	inner, err := listenFor(c)
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	if c.BindPort == 0 {
		c.BindPort = inner.GetAutoBindPort()
		c.AdvertisePort = c.BindPort
	}
	g := &guarded{NetTransport: inner, streams: make(chan net.Conn), ending: make(chan struct{}), ended: make(chan struct{})}
	g.shutdown = sync.OnceValue(func() error {
		defer close(g.ended)
		close(g.ending)
		return inner.Shutdown()
	})
	go g.pass(strangers.NewDoor(streamsMax))
	return g, nil
}

func listenFor(c *memberlist.Config) (inner *memberlist.NetTransport, err error) {
	for range listenTries {
		inner, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{c.BindAddr}, BindPort: c.BindPort, Logger: c.Logger,
		})
		if err == nil || c.BindPort != 0 || !strings.Contains(err.Error(), "address already in use") { // the library wraps no error
			return inner, err
		}
	}
	return nil, err
}

// pass takes what the library accepts until Shutdown has ended: it waits for that.
func (g *guarded) pass(door *strangers.Door) {
	for {
		select {
		case conn := <-g.NetTransport.StreamCh():
			select {
			case g.streams <- door.Enter(conn):
			case <-g.ending:
				_ = conn.Close()
			}
		case <-g.ended:
			return
		}
	}
}

// StreamCh implements memberlist.Transport.
func (g *guarded) StreamCh() <-chan net.Conn { return g.streams }

// Shutdown implements memberlist.Transport.
func (g *guarded) Shutdown() error { return g.shutdown() }
