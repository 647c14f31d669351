package setpoint

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 2 * time.Second
	// pingInterval and pingTimeout bound how long a dead server goes unnoticed on an idle connection.
	pingInterval = 5 * time.Second
	pingTimeout  = 5 * time.Second
)

// failover sends requests to one of several servers, and to the next when that
// one cannot be reached. Only requests that never left are sent again.
type failover struct {
	servers   []string
	current   atomic.Uint32
	transport *http.Transport
}

func newFailover(config *tls.Config, servers []string) *failover {
	return &failover{servers: servers, transport: newTransport(config)}
}

// newTransport keeps connections to servers, and notices when one is gone.
func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: config.Clone(), TLSHandshakeTimeout: dialTimeout,
		DialContext:       (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingTimeout},
	}
}

// RoundTrip implements http.RoundTripper.
func (f *failover) RoundTrip(r *http.Request) (*http.Response, error) {
	var errs []error
	for range f.servers {
		n := f.current.Load()
		response, err := f.transport.RoundTrip(f.towards(r, n))
		if err == nil {
			return response, nil
		}
		errs = append(errs, err)
		f.current.CompareAndSwap(n, n+1)
		if !neverSent(err) || r.Context().Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (f *failover) towards(r *http.Request, n uint32) *http.Request {
	to := r.Clone(r.Context())
	to.URL.Host = f.servers[int(n)%len(f.servers)]
	to.Host = to.URL.Host
	return to
}

// neverSent reports that no connection was made, so nothing can have happened.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
