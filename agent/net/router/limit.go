package router

import (
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/shares"
	"github.com/setpoint-io/setpoint/internal/strangers"
)

// requestLimits are those of all ports of this node.
func requestLimits() shares.Limits { return shares.Limits{All: shares.OfFiles(2*requestsMax, 2) / 2} }

func newDoor() *strangers.Door { return strangers.NewDoor(shares.OfFiles(silentMax, silentFilesPart)) }

// enter takes a place for a request or stream to a route; one that goes nowhere is answered at once and needs none.
func (r *router) enter(route *table.Route) (leave func(), err error) {
	if route == nil {
		return func() {}, nil
	}
	return r.requests.Enter(shares.Namespace(route.Ingress.Namespace))
}

// idleAgain gives a connection back to the door when it waits for its next request.
func idleAgain(c net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		strangers.Forgotten(c)
	}
}

// counting is a listener whose open connections a metric shows. They can end in one direction alone, which streams need.
type counting struct {
	net.Listener
	open prometheus.Gauge
}

// Accept implements net.Listener.
func (l counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Inc()
	return &counted{conn, sync.OnceFunc(l.open.Dec)}, nil
}

// counted is a connection of a counting listener.
type counted struct {
	net.Conn
	closed func()
}

// CloseWrite ends the direction to the client.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
