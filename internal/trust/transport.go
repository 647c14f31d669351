package trust

import (
	"crypto/tls"
	"net/http"
	"sync"
)

// Transport sends requests over connections that show the newest certificate of an
// identity, to servers of its newest authorities. Without it they would go on over one connection for months, and a server
// refuses a request whose connection has shown a certificate that has ended since.
// Requests that run when the certificate is renewed, such as watches, go on.
type Transport struct {
	live *Live
	make func() *http.Transport

	mu sync.Mutex
	// shown is the identity of transport's connections.
	shown     *Identity
	transport *http.Transport
}

// NewTransport makes transports with a configuration of live.
func NewTransport(live *Live, config *tls.Config, transport func(*tls.Config) *http.Transport) *Transport {
	return &Transport{live: live, make: func() *http.Transport {
		newest := config.Clone()
		newest.RootCAs = live.Pool()
		return transport(newest)
	}}
}

func (r *Transport) current() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if newest := r.live.Identity(); r.transport == nil || newest != r.shown {
		if r.transport != nil {
			r.transport.CloseIdleConnections() // the others close when they have been idle
		}
		r.transport, r.shown = r.make(), newest
	}
	return r.transport
}

// RoundTrip implements http.RoundTripper.
func (r *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.current().RoundTrip(request)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (r *Transport) CloseIdleConnections() { r.current().CloseIdleConnections() }
