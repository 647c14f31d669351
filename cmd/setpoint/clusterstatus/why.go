package clusterstatus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
)

// whyNoAnswer is what kept a server from answering, in a few words.
func whyNoAnswer(err error) string {
	var timeout net.Error
	name := (*net.DNSError)(nil)
	switch expired, ok := errors.AsType[kubeconfig.ExpiredError](err); {
	case ok:
		return "your certificate expired on " + expired.End.Format(time.DateOnly)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it"
	case errors.As(err, &name):
		return "unknown host " + name.Name
	case errors.As(err, new(x509.UnknownAuthorityError)),
		errors.As(err, new(x509.HostnameError)),
		errors.As(err, new(x509.CertificateInvalidError)):
		return "its certificate is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %v", Timeout)
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next // the outer ones name the address again
	}
	return err.Error()
}
