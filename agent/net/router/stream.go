package router

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/strangers"
)

// streamIdleTimeout is how long nothing may come from either side of a connection that is copied.
const streamIdleTimeout = time.Hour

// lingerTimeout is how long one direction of a connection goes on after the other has failed.
const lingerTimeout = 5 * time.Second

// stream is what becomes of a connection with TLS.
type stream struct {
	// copied: it goes to route, nil for nowhere, after its TLS has ended here or with it. Otherwise its requests are routed.
	copied, terminate bool
	route             *table.Route
}

// streams tells whether some connections to a port are copied.
func (r *router) streams(at int) bool {
	port := (*r.ports.Load())[at]
	return port != nil && port.Streams
}

// stream is for the more specific host: that of a listener and its route, or of an Ingress, with rules or a certificate.
func (r *router) stream(at int, serverName string) stream {
	port := (*r.ports.Load())[at]
	if port == nil {
		return stream{}
	}
	mode, route, host, known := port.Stream(serverName)
	if at == r.Ports.HTTPS && r.table.Load().Named(serverName).Specificity() > host.Specificity() {
		return stream{}
	}
	switch {
	case known:
		return stream{copied: mode != gateway.HTTP, terminate: mode == gateway.Terminate, route: route}
	case port.Requests || at == r.Ports.HTTPS:
		return stream{} // somebody is there who can say that nobody is
	}
	return stream{copied: true}
}

// copyStream copies a connection to a backend and back, until both sides have ended, nothing comes for streamIdleTimeout, or ctx ends. One
// that goes nowhere is closed.
func (r *router) copyStream(ctx context.Context, client net.Conn, to stream, at int) {
	defer func() { _ = client.Close() }()
	if to.route == nil || to.route.Code != 0 || len(to.route.Backend.Endpoints) == 0 || to.terminate && to.route.Backend.Refused {
		return
	}
	leave, err := r.enter(to.route)
	if err != nil {
		r.Logger.Debug("a connection has no place", "route", to.route.Ingress.String(), "err", err)
		return
	}
	defer leave()
	strangers.Known(client)
	backend, err := r.dialAny(ctx, to.route)
	if err != nil {
		r.Logger.Debug("no endpoint takes a connection", "route", to.route.Ingress.String(), "err", err)
		return
	}
	defer func() { _ = backend.Close() }()
	if to.terminate {
		if client, backend, err = r.inside(ctx, client, backend, to.route, at); err != nil {
			r.Logger.Debug("a TLS connection has failed", "route", to.route.Ingress.String(), "err", err)
			return
		}
	}
	r.Metrics.streams.Inc()
	defer r.Metrics.streams.Dec()
	both(ctx, client, backend)
}

// inside returns both connections without their TLS: that of the client ends here, and that to the backend begins, if there is to be any.
func (r *router) inside(ctx context.Context, client, backend net.Conn, route *table.Route, at int) (net.Conn, net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if trust := route.Backend.TLS; trust != nil {
		secure := tls.Client(backend, trust.Config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, nil, err
		}
		backend = secure
	}
	plain := tls.Server(client, r.tlsConfig(at))
	return plain, backend, plain.HandshakeContext(ctx)
}

// dialAny connects to a random endpoint of a route, and to others if that cannot be reached.
func (r *router) dialAny(ctx context.Context, route *table.Route) (net.Conn, error) {
	ctx = context.WithValue(ctx, routeKey{}, route)
	endpoints := route.Backend.Endpoints
	first := mathrand.IntN(len(endpoints))
	var failure error
	for try := range min(triesMax, len(endpoints)) {
		conn, err := r.dial(ctx, "tcp", endpoints[(first+try)%len(endpoints)].String())
		if err == nil {
			return conn, nil
		}
		failure = errors.Join(failure, err)
	}
	return nil, failure
}

// both copies in both directions. The end of one is told to the other side, which may go on.
func both(ctx context.Context, a, b net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	defer stop()
	idle := time.AfterFunc(streamIdleTimeout, cancel)
	defer idle.Stop()
	var ends sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		ends.Go(func() {
			if _, err := io.Copy(way[0], noting{way[1], idle}); err != nil {
				time.AfterFunc(lingerTimeout, cancel)
				_, _ = io.Copy(io.Discard, way[1]) // what is not read resets the connection, and with it what is on its way back
			}
			_ = closeWrite(way[0]) // it has ended before, if it cannot
		})
	}
	ends.Wait()
}

// noting is a reader that begins the idle time anew with all that comes.
type noting struct {
	io.Reader
	idle *time.Timer
}

func (n noting) Read(p []byte) (int, error) {
	count, err := n.Reader.Read(p)
	n.idle.Reset(streamIdleTimeout)
	return count, err
}

var errNoHalf = errors.New("this connection cannot end in one direction alone")

// closeWrite ends one direction of a connection.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errNoHalf
}
