package revocation

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// dial opens a connection, as http.Transport.DialContext does.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// httpProtocols are what a client of HTTP speaks, the best first.
var httpProtocols = []string{"h2", "http/1.1"}

// GuardTransport makes a transport reach nobody who is revoked, whatever address he has: a connection to him is not made, and one that is
// open ends when he is. handshakeTimeout bounds a handshake. The transport must have DialContext and TLSClientConfig, and must not have
// been used. A nil Judge changes nothing.
func (j *Judge) GuardTransport(t *http.Transport, handshakeTimeout time.Duration) {
	if j == nil {
		return
	}
	config := t.TLSClientConfig.Clone()
	if len(config.NextProtos) == 0 {
		config.NextProtos = httpProtocols
	}
	j.Guard(config)
	t.DialTLSContext = j.dialTLS(t.DialContext, config, handshakeTimeout)
}

// dialTLS returns connections of TLS itself, not something around them: http.Transport asks these which protocol they speak.
func (j *Judge) dialTLS(dial dial, config *tls.Config, handshakeTimeout time.Duration) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		under := &watched{conn, func() {}}
		secured := tls.Client(under, towards(config, address))
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		under.closed = j.Opened(OfConnection(secured.ConnectionState()), func() { _ = conn.Close() })
		return secured, nil
	}
}

// towards is a configuration for the server at an address, unless it names another.
func towards(config *tls.Config, address string) *tls.Config {
	if config.ServerName != "" {
		return config
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	config = config.Clone()
	config.ServerName = host
	return config
}

// Answers makes a transport that takes no answer of a server that is revoked. He has seen the request, so it must say nothing that he may
// not know. The connections must be of TLS that was verified. A nil Judge takes all.
func (j *Judge) Answers(next http.RoundTripper) http.RoundTripper { return &answers{j, next} }

type answers struct {
	judge *Judge
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := a.next.RoundTrip(r)
	if err != nil || answer.TLS == nil || len(answer.TLS.PeerCertificates) == 0 {
		return answer, err
	}
	if err := a.judge.Revoked(OfCertificate(answer.TLS.PeerCertificates[0])); err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	return answer, nil
}
