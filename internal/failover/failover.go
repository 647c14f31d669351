package failover

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/revocation"
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
	servers   func() []string
	transport http.RoundTripper

	mu      sync.Mutex
	current string // it may be a server no more
}

// New returns one for the servers that there are at the time of each request, host:port, at least one. It begins with any of
// them, so that many agents do not all begin with the same. It goes to none that judge knows to be revoked, nor stays there; nil: none is.
func New(live *trust.Live, servers func() []string, judge *revocation.Judge) (*Failover, error) {
	config, err := live.ClientConfig()
	if err != nil {
		return nil, err
	}
	return &Failover{servers: servers, transport: trust.NewTransport(live, config, Guarded(judge, impatient))}, nil
}

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
	servers := f.servers()
	for range servers {
		server := f.at(servers)
		response, err := f.transport.RoundTrip(towards(r, server))
		if err == nil {
			if cannotServe(response) {
				f.leave(servers, server)
			}
			return response, nil
		}
		errs = append(errs, err)
		f.leave(servers, server)
		if !neverSent(err) || r.Context().Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// at is the server to ask now: any, if the one asked last is none any more.
func (f *Failover) at(servers []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(servers, f.current) {
		f.current = servers[rand.IntN(len(servers))]
	}
	return f.current
}

// leave goes on to the next server, unless another request has done so.
func (f *Failover) leave(servers []string, server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == server {
		f.current = servers[(slices.Index(servers, server)+1)%len(servers)]
	}
}

func towards(r *http.Request, server string) *http.Request {
	to := r.Clone(r.Context())
	to.URL.Host, to.Host = server, server
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

// neverSent reports that no connection was made, or only to a server of another cluster's life or one that was revoked, so nothing can
// have happened.
func neverSent(err error) bool {
	var op *net.OpError
	var revoked *revocation.Error
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, clusterlife.ErrOther) || errors.As(err, &revoked) ||
		errors.Is(err, revocation.ErrAuthority)
}

// Guarded makes transports that reach no server that judge knows to be revoked, and stay at none. A nil judge knows of none.
func Guarded(judge *revocation.Judge, transport func(*tls.Config) *http.Transport) func(*tls.Config) *http.Transport {
	return func(config *tls.Config) *http.Transport {
		t := transport(config)
		judge.GuardTransport(t, dialTimeout)
		return t
	}
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
