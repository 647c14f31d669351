package auth

import (
	"context"
	"crypto/x509"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// WithConnection lets the requests of one connection share what its certificate says:
// reading the name and hashing the certificate anew costs more than most reads. It is
// for http.Server.ConnContext; without it each request reads the certificate. named, if
// any, is called when the client of the connection has first said who it is.
func WithConnection(ctx context.Context, named func()) context.Context {
	c := &connection{}
	if named != nil {
		c.named = sync.OnceFunc(named)
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

type connectionKey struct{}

// connection remembers the user of one certificate. A nil connection remembers nobody.
type connection struct {
	last  atomic.Pointer[certified]
	named func() // may be nil
}

// isNamed says that the client is known.
func (c *connection) isNamed() {
	if c != nil && c.named != nil {
		c.named()
	}
}

// certified is what a certificate says. Nobody changes it.
type certified struct {
	certificate *x509.Certificate
	response    *authenticator.Response
}

func (c *connection) known(certificate *x509.Certificate) *authenticator.Response {
	if c == nil {
		return nil
	}
	if last := c.last.Load(); last != nil && last.certificate == certificate {
		return last.response
	}
	return nil
}

func (c *connection) remember(certificate *x509.Certificate, response *authenticator.Response) {
	if c != nil {
		c.last.Store(&certified{certificate, response})
	}
}
