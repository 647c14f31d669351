package proxy

import (
	"crypto/tls"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// podHandshakeTimeout bounds the greeting of a pod that speaks TLS.
	podHandshakeTimeout = 30 * time.Second
	podIdleTimeout      = time.Minute
	// podIdleConnections bounds what is kept open for the next request.
	podIdleConnections = 100
)

// NewTransport reaches what listens in pods, by dial. Nobody vouches for their certificates, and
// the server shows none of its own. HTTP/2 is left out: its connections cannot be upgraded.
func NewTransport(dial utilnet.DialFunc) *http.Transport {
	return &http.Transport{
		DialContext: dial,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			NextProtos:         []string{"http/1.1"},
		}, // as upstream: a pod's certificate is its own affair
		TLSHandshakeTimeout: podHandshakeTimeout,
		IdleConnTimeout:     podIdleTimeout, MaxIdleConns: podIdleConnections,
		MaxResponseHeaderBytes: HeaderBytesMax,
	}
}
