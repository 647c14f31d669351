package kubeconfig

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// SayIfExpired makes a request that fails say that the user's certificate has expired, if it has: servers end such a connection with an
// alert, of which each library makes an error of its own. A server may see another time, so the certificate is shown all the same.
func SayIfExpired(config *rest.Config) {
	end, ok := certificateEnd(config)
	if ok {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return expiring{next, end} })
	}
}

// expiring sends the requests of a user whose certificate is valid until end.
type expiring struct {
	next http.RoundTripper
	end  time.Time
}

// RoundTrip implements http.RoundTripper.
func (e expiring) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(r)
	dialing, ok := errors.AsType[*net.OpError](err)
	if err != nil && time.Now().After(e.end) && r.Context().Err() == nil && !(ok && dialing.Op == "dial") {
		return nil, ExpiredError{err, e.end}
	}
	return response, err
}

// ExpiredError is an error that an expired certificate explains.
type ExpiredError struct {
	error
	End time.Time
}

// Error is one sentence, the same for all servers.
func (e ExpiredError) Error() string {
	return fmt.Sprintf("the certificate of this kubeconfig expired on %s: copy the kubeconfig from the trust folder of a server again",
		e.End.Format(time.DateOnly))
}

// Unwrap returns what the connection's end looked like.
func (e ExpiredError) Unwrap() error { return e.error }

// certificateEnd is when the user's certificate ends; ok is false without a certificate that can be read, which others say.
func certificateEnd(config *rest.Config) (end time.Time, ok bool) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return end, false
	}
	chain, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return end, false
	}
	return chain[0].NotAfter, true
}
