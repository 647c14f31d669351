package failover

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	dialTimeout = 2 * time.Second
	// pingInterval and pingTimeout bound how long a dead server goes unnoticed on an idle connection.
	pingInterval = 5 * time.Second
	pingTimeout  = 5 * time.Second
	// idleTimeout closes connections over which nothing goes.
	idleTimeout = 3 * time.Minute
)

// Failover sends requests to one of several servers, and to the next when that one cannot be reached. Only
// requests for which no connection could be made are sent again.
type Failover struct {
	servers   []string
	current   atomic.Uint32
	transport *trust.Transport
}

// New returns one for servers that are host:port.
func New(live *trust.Live, servers []string) (*Failover, error) {
	config, err := live.ClientConfig()
	if err != nil {
		return nil, err
	}
	return &Failover{servers: servers, transport: trust.NewTransport(live, config, Transport)}, nil
}

// Transport keeps connections to servers, and notices when one is gone.
func Transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: config.Clone(), TLSHandshakeTimeout: dialTimeout,
		DialContext:       (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingTimeout},
	}
}

// RoundTrip implements http.RoundTripper.
func (f *Failover) RoundTrip(r *http.Request) (*http.Response, error) {
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

func (f *Failover) towards(r *http.Request, n uint32) *http.Request {
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

// SessionTransport is not shared with other requests: a session must not wait
// behind them.
func SessionTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: config.Clone(), TLSHandshakeTimeout: dialTimeout,
		DialContext:       (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout,
	}
}
