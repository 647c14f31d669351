package auth

import (
	"context"
	"crypto/x509"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/shares"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// WithConnection lets the requests of one connection share what its certificate says:
// reading the name and hashing the certificate anew costs more than most reads. It is
// for http.Server.ConnContext; without it each request reads the certificate. named, if
// any, is told whose the connection is when its client has first said who it is, and when it is another user.
func WithConnection(ctx context.Context, named func(shares.Holder)) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{named: named})
}

type connectionKey struct{}

// connection remembers the user of one certificate. A nil connection remembers nobody.
type connection struct {
	last  atomic.Pointer[certified]
	named func(shares.Holder) // may be nil
	user  atomic.Pointer[string]
}

// isNamed says that the client is known.
func (c *connection) isNamed(u user.Info) {
	if c == nil || c.named == nil {
		return
	}
	name := u.GetName()
	if before := c.user.Load(); before == nil || *before != name {
		c.user.Store(&name)
		c.named(Tenant(u))
	}
}

// certified is what a certificate says. Nobody changes it.
type certified struct {
	certificate *x509.Certificate
	response    *authenticator.Response
	key         string // its hash
}

// known is what was remembered of a certificate, or nil.
func (c *connection) known(certificate *x509.Certificate) *certified {
	if c == nil {
		return nil
	}
	if last := c.last.Load(); last != nil && last.certificate == certificate {
		return last
	}
	return nil
}

func (c *connection) remember(certificate *x509.Certificate, response *authenticator.Response) {
	if c != nil {
		c.last.Store(&certified{certificate, response, trust.KeyHash(certificate.RawSubjectPublicKeyInfo)})
	}
}
