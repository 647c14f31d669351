package clusterstatus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/server/admin"
)

// refusalOf is 401 or 403 if an error says that a server answers and refuses to tell its status, otherwise 0. One that ends the connection
// because the certificate has expired does not accept the credentials.
func refusalOf(err error) int {
	if _, expired := errors.AsType[kubeconfig.ExpiredError](err); expired {
		return http.StatusUnauthorized
	}
	refused, ok := errors.AsType[*admin.Refusal](err)
	if ok && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		return refused.StatusCode
	}
	return 0
}

// whyNoAnswer is what kept a server from answering, in a few words.
func whyNoAnswer(err error) string {
	var timeout net.Error
	name := (*net.DNSError)(nil)
	switch expired, ok := errors.AsType[kubeconfig.ExpiredError](err); {
	case ok:
		return "your certificate expired on " + expired.End.Format(time.DateOnly)
	case refusalOf(err) == http.StatusUnauthorized:
		return "it does not accept the credentials"
	case refusalOf(err) == http.StatusForbidden:
		return "for administrators alone"
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
