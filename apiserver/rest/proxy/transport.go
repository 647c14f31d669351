package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

const (
	// podDialTimeout bounds connecting to a pod for a client of the proxy subresources.
	podDialTimeout = 30 * time.Second
	podIdleTimeout = time.Minute
	// podIdleConnections bounds what is kept open for the next request.
	podIdleConnections = 100
)

// NewTransport reaches what listens in pods. Nobody vouches for their certificates, and
// the server shows none of its own. HTTP/2 is left out: its connections cannot be upgraded.
func NewTransport() *http.Transport {
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: podDialTimeout}).DialContext,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			NextProtos:         []string{"http/1.1"},
		}, // as upstream: a pod's certificate is its own affair
		TLSHandshakeTimeout: podDialTimeout,
		IdleConnTimeout:     podIdleTimeout, MaxIdleConns: podIdleConnections,
	}
}
