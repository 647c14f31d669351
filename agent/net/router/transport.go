package router

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

const (
	// idlePerEndpoint and idleMax are how many connections to endpoints are kept, for each of the transports.
	idlePerEndpoint = 64
	idleMax         = 4096
	backendIdle     = 60 * time.Second
)

// transports are the connections to endpoints, by what those speak, and by whom they trust: a connection whose endpoint was checked by one
// policy is never used for another.
type transports struct {
	dial dialer
	// now are the endpoints of a backend at this moment.
	now   func(*table.Backend) []netip.AddrPort
	plain map[table.Protocol]*http.Transport

	mu      sync.Mutex
	checked map[trusting]*http.Transport
}

type trusting struct {
	key      string
	protocol table.Protocol
}

// dialer connects to an endpoint; errors are dialErrors.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func newTransports(dial dialer, now func(*table.Backend) []netip.AddrPort) *transports {
	t := &transports{dial: dial, now: now, plain: map[table.Protocol]*http.Transport{}, checked: map[trusting]*http.Transport{}}
	for _, protocol := range []table.Protocol{table.HTTP, table.H2C, table.HTTPS} {
		made := t.make(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // see table.HTTPS
		made.Protocols.SetHTTP1(protocol != table.H2C)
		made.Protocols.SetHTTP2(protocol == table.HTTPS)
		made.Protocols.SetUnencryptedHTTP2(protocol == table.H2C)
		t.plain[protocol] = made
	}
	return t
}

func (t *transports) make(config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: t.dial, MaxIdleConns: idleMax, MaxIdleConnsPerHost: idlePerEndpoint, IdleConnTimeout: backendIdle,
		DisableCompression: true, Protocols: new(http.Protocols), TLSClientConfig: config, MaxResponseHeaderBytes: headerBytesMax,
	}
}

// of is the one for a backend.
func (t *transports) of(b *table.Backend) *http.Transport {
	if b.TLS == nil {
		return t.plain[b.Protocol]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := trusting{b.TLS.Key, b.Protocol}
	made := t.checked[key]
	if made == nil {
		made = t.make(b.TLS.Config.Clone())
		made.Protocols.SetHTTP1(b.Protocol != table.H2C)
		made.Protocols.SetHTTP2(true)
		t.checked[key] = made
	}
	return made
}

// keep lets go of those whose policies are gone. Requests under way go on.
func (t *transports) keep(keys map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, transport := range t.checked {
		if !keys[key.key] {
			transport.CloseIdleConnections()
			delete(t.checked, key)
		}
	}
}
