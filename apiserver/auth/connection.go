package auth

import (
	"context"
	"crypto/x509"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// WithConnection lets the requests of one connection share what its certificate says:
// reading the name and hashing the certificate anew costs more than most reads. It is
// for http.Server.ConnContext; without it each request reads the certificate.
func WithConnection(ctx context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

type connectionKey struct{}

// connection remembers the user of one certificate. A nil connection remembers nobody.
type connection struct{ last atomic.Pointer[certified] }

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
