package aggregation

import (
	"crypto/tls"
	"encoding/json"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// certificateLifetime is how long one certificate is used before the next is made.
const certificateLifetime = 30 * 24 * time.Hour

// FrontProxy is the client identity of a server towards aggregated API servers. It is safe for concurrent use.
type FrontProxy struct {
	authority *trust.CA

	mu      sync.Mutex
	current *tls.Certificate
	made    time.Time
}

// NewFrontProxy derives the authority for front proxies from the cluster's.
func NewFrontProxy(ca *trust.CA) (*FrontProxy, error) {
	authority, err := ca.FrontProxy()
	return &FrontProxy{authority: authority}, err
}

// Certificate is made when it is first needed, and anew long before it ends.
func (p *FrontProxy) Certificate() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.current != nil && now.Sub(p.made) < certificateLifetime {
		return p.current, nil
	}
	id, err := p.authority.IssueFrontProxy(now)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
	if err != nil {
		return nil, err
	}
	p.current, p.made = &pair, now
	return p.current, nil
}

// Expiries are when the authority ends, and the certificate if one was made.
func (p *FrontProxy) Expiries(server string) []trust.Expiry {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []trust.Expiry{{Kind: trust.KindFrontProxyAuthority, Expires: p.authority.Expires()}}
	if p.current != nil && p.current.Leaf != nil {
		all = append(all, trust.Expiry{Kind: trust.KindFrontProxy, Name: server, Expires: p.current.Leaf.NotAfter})
	}
	return all
}

// Configuration tells aggregated API servers which CAs to trust: upstream's keys of the ConfigMap
// kube-system/extension-apiserver-authentication. clients is the authority of users' certificates.
func (p *FrontProxy) Configuration(clients *trust.CA) map[string]string {
	return map[string]string{
		"client-ca-file":                     string(clients.CertPEM()),
		"requestheader-client-ca-file":       string(p.authority.CertPEM()),
		"requestheader-allowed-names":        listOf(trust.FrontProxyName),
		"requestheader-username-headers":     listOf("X-Remote-User"),
		"requestheader-uid-headers":          listOf("X-Remote-Uid"),
		"requestheader-group-headers":        listOf("X-Remote-Group"),
		"requestheader-extra-headers-prefix": listOf("X-Remote-Extra-"),
	}
}

func listOf(value string) string {
	text, err := json.Marshal([]string{value})
	if err != nil {
		panic("aggregation: a text cannot be encoded: " + err.Error())
	}
	return string(text)
}
