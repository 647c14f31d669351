package aggregation

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// certificateLifetime is how long one certificate is used before the next is made.
const certificateLifetime = 30 * 24 * time.Hour

var errNotReady = errors.New("this server does not know yet how aggregated servers know it")

// FrontProxy is the client identity of a server towards aggregated API servers. It is safe for concurrent use.
type FrontProxy struct {
	authorities *trust.Ring[trust.ProxyAuthority]
	// ready, if not nil, is closed when it is known which authority counts.
	ready <-chan struct{}
	// changed has room for one, and something in it when Configuration says something else than before.
	changed chan struct{}
	now     func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	made    time.Time
	by      string // the authority of current
}

// NewFrontProxy has certificates of the authority that is used of several; aggregated servers are told of all.
func NewFrontProxy(authorities *trust.Ring[trust.ProxyAuthority], ready <-chan struct{}, now func() time.Time) *FrontProxy {
	return &FrontProxy{authorities: authorities, ready: ready, changed: make(chan struct{}, 1), now: now}
}

// NoteChange says that there are other authorities. It waits for nobody.
func (p *FrontProxy) NoteChange() {
	select {
	case p.changed <- struct{}{}:
	default: // who tells of them has not looked yet
	}
}

// Changed has something to receive after NoteChange, once however often that was called.
func (p *FrontProxy) Changed() <-chan struct{} { return p.changed }

// Certificate is made when it is first needed, and anew long before it ends or when another authority is used. A server that does not know
// yet which one that is shows none.
func (p *FrontProxy) Certificate() (*tls.Certificate, error) {
	if !p.isReady() {
		return nil, errNotReady
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, authority := p.now(), p.authorities.Used()
	if p.current != nil && now.Sub(p.made) < certificateLifetime && p.by == authority.ID() {
		return p.current, nil
	}
	id, err := authority.IssueFrontProxy(now)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
	if err != nil {
		return nil, err
	}
	p.current, p.made, p.by = &pair, now, authority.ID()
	return p.current, nil
}

func (p *FrontProxy) isReady() bool {
	select {
	case <-p.ready:
		return true
	default:
		return p.ready == nil
	}
}

// Authority is what the authority is called by which it is known now. Connections that were made with another one are not used any more:
// aggregated servers look with each request whether they trust the certificate of the connection.
func (p *FrontProxy) Authority() string { return p.authorities.Used().ID() }

// Expiries are when the authority ends, and the certificate if one was made.
func (p *FrontProxy) Expiries(server string) []trust.Expiry {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []trust.Expiry{{Kind: trust.KindFrontProxyAuthority, Expires: p.authorities.Used().Expires()}}
	if p.current != nil && p.current.Leaf != nil {
		all = append(all, trust.Expiry{Kind: trust.KindFrontProxy, Name: server, Expires: p.current.Leaf.NotAfter})
	}
	return all
}

// AuthenticationName is the ConfigMap in kube-system that tells aggregated servers whom to believe.
const AuthenticationName = "extension-apiserver-authentication"

// ClientCAs is its key with the authorities of users' certificates.
const ClientCAs = "client-ca-file"

const requestHeaderCAs = "requestheader-client-ca-file"

// Configuration tells aggregated API servers which CAs to trust: upstream's keys of the ConfigMap
// kube-system/extension-apiserver-authentication. clients is the authority of users' certificates. A server that does not know yet which
// authorities of front proxies there are fails, and says the rest: what others have written of them stays.
func (p *FrontProxy) Configuration(clients *trust.CA) (map[string]string, error) {
	told := map[string]string{
		ClientCAs:                            string(clients.CertPEM()),
		"requestheader-allowed-names":        listOf(trust.FrontProxyName),
		"requestheader-username-headers":     listOf("X-Remote-User"),
		"requestheader-uid-headers":          listOf("X-Remote-Uid"),
		"requestheader-group-headers":        listOf("X-Remote-Group"),
		"requestheader-extra-headers-prefix": listOf("X-Remote-Extra-"),
	}
	if !p.isReady() {
		return told, errNotReady
	}
	told[requestHeaderCAs] = p.bundle()
	return told, nil
}

// bundle has the certificates of all authorities, in the order of what they are called: which one is used changes nothing.
func (p *FrontProxy) bundle() string {
	all := slices.Clone(*p.authorities.Now())
	slices.SortFunc(all, func(a, b trust.ProxyAuthority) int { return strings.Compare(a.ID(), b.ID()) })
	text := strings.Builder{}
	for _, authority := range all {
		text.Write(authority.CertPEM())
	}
	return text.String()
}

// IsTold reports whether the ConfigMap, as it is stored, tells of all authorities and of no other.
func (p *FrontProxy) IsTold(stored map[string]string) bool {
	return stored[requestHeaderCAs] == p.bundle()
}

func listOf(value string) string {
	text, err := json.Marshal([]string{value})
	if err != nil {
		panic("aggregation: a text cannot be encoded: " + err.Error())
	}
	return string(text)
}
