package failover

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	dialTimeout = 2 * time.Second
	// pingInterval and pingTimeout bound how long a dead server goes unnoticed on an idle connection.
	pingInterval = 5 * time.Second
	pingTimeout  = 5 * time.Second
	// answerTimeout is how long a server may take until it begins to answer. It answers without a leader after some
	// seconds, a write that waits for a webhook after 30 s, and watches at once.
	answerTimeout = 40 * time.Second
	// idleTimeout closes connections over which nothing goes.
	idleTimeout = 3 * time.Minute
)

// Failover sends requests to one of several servers, and to the next when that one cannot be reached or cannot serve:
// one that has no leader, or that stops, answers 503, or 504 if a write may have taken effect. Only requests for which
// no connection could be made, or that a server of another life refused, are sent again here; an answer goes to the
// caller, who sees what may be repeated (Retry-After, which client-go follows), and its next request goes to the next
// server.
type Failover struct {
	servers   []string
	current   atomic.Uint32
	transport http.RoundTripper
}

// New returns one for servers that are host:port. It begins with any of them, so that many agents do not all begin
// with the same.
func New(live *trust.Live, servers []string) (*Failover, error) {
	config, err := live.ClientConfig()
	if err != nil {
		return nil, err
	}
	f := &Failover{servers: servers, transport: trust.NewTransport(live, config, impatient)}
	f.current.Store(anyOf(len(servers)))
	return f, nil
}

// anyOf is a number below n, or 0.
func anyOf(n int) uint32 { return rand.Uint32N(uint32(max(n, 1))) }

// impatient is Transport for requests that servers answer within answerTimeout.
func impatient(config *tls.Config) *http.Transport {
	t := Transport(config)
	t.ResponseHeaderTimeout = answerTimeout
	return t
}

// Through has requests go through what wrap makes of the transport, and returns f.
func (f *Failover) Through(wrap func(http.RoundTripper) http.RoundTripper) *Failover {
	f.transport = wrap(f.transport)
	return f
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
			if cannotServe(response) {
				f.current.CompareAndSwap(n, n+1)
			}
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
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil { // a try before may have read of it
			to.Body = body
		}
	}
	return to
}

// cannotServe reports that another server may do better.
func cannotServe(response *http.Response) bool {
	return response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusGatewayTimeout
}

// neverSent reports that no connection was made, or only to a server of another cluster's life, so nothing can have happened.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, clusterlife.ErrOther)
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
