package trust

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// Identity is a certificate, its key and the authority of those it talks to, in PEM.
// Its configurations show this one certificate; those of Live show the newest.
type Identity struct {
	CertPEM, KeyPEM, CAPEM []byte
	// BehindPEM are the certificates that a server shows behind its own; empty: the first one of CAPEM.
	BehindPEM []byte
}

// ServerConfig is the TLS configuration of the API's listener. A client certificate is
// optional (tokens, health checks) but must be ours and valid when it is given, so that
// a request's VerifiedChains need no second check. The authority's certificate is sent
// along: a machine that joins knows only its hash. The caller sets NextProtos.
func (id *Identity) ServerConfig() (*tls.Config, error) {
	config, pool, err := id.config()
	if err != nil {
		return nil, err
	}
	behind, err := id.behind()
	if err != nil {
		return nil, err
	}
	config.Certificates[0].Certificate = append(config.Certificates[0].Certificate, behind...)
	config.ClientAuth = tls.VerifyClientCertIfGiven
	config.ClientCAs = pool
	return config, nil
}

// ClientConfig is the TLS configuration for dialling a server: beyond its name, its role is checked.
func (id *Identity) ClientConfig() (*tls.Config, error) {
	config, pool, err := id.config()
	if err != nil {
		return nil, err
	}
	config.RootCAs = pool
	config.VerifyConnection = RequireServer
	return config, nil
}

// behind are the certificates that are shown behind the own one.
func (id *Identity) behind() (all [][]byte, err error) {
	if len(id.BehindPEM) == 0 {
		first, err := ParseCertificate(id.CAPEM)
		if err != nil {
			return nil, err
		}
		return [][]byte{first.Raw}, nil
	}
	certificates, err := ParseCertificates(id.BehindPEM)
	for _, certificate := range certificates {
		all = append(all, certificate.Raw)
	}
	return all, err
}

func (id *Identity) config() (*tls.Config, *x509.CertPool, error) {
	pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate and key: %w", err)
	}
	pool, err := poolOf(id.CAPEM)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, pool, nil
}

func poolOf(caPEM []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(caPEM) {
		return nil, fmt.Errorf("certificate authority: %w: CERTIFICATE", ErrBadPEM)
	}
	return pool, nil
}

// RequireServer fails with ErrNotServer unless the verified certificate of the other side
// is a server's. It fits tls.Config.VerifyConnection; listeners that share a port with
// other protocols call it for the protocols of the replicas.
func RequireServer(state tls.ConnectionState) error {
	certificate, err := verifiedPeer(state)
	if err != nil {
		return err
	}
	if !saysServer(certificate) {
		return fmt.Errorf("%w: it is %q", ErrNotServer, certificate.Subject.CommonName)
	}
	return nil
}

func verifiedPeer(state tls.ConnectionState) (*x509.Certificate, error) {
	if len(state.VerifiedChains) == 0 {
		return nil, fmt.Errorf("%w: it has shown none that could be verified", ErrNotServer)
	}
	return state.VerifiedChains[0][0], nil
}

// NeedsRenewal reports whether a third or less of the certificate's life is left, and another one would end later.
func (id *Identity) NeedsRenewal(now time.Time) bool {
	certificate, err := ParseCertificate(id.CertPEM)
	return err != nil || !id.isFresh(certificate, now)
}

// isFresh reports whether the identity's certificate needs no renewal.
func (id *Identity) isFresh(certificate *x509.Certificate, now time.Time) bool {
	return farFromEnd(certificate, now) || id.endsWithAuthority(certificate)
}

// endsWithAuthority reports whether a certificate ends when the authority that signs does, so that another one would end no later. It would
// be renewed at ever shorter intervals: of all that is left, two thirds are over ever sooner.
func (id *Identity) endsWithAuthority(certificate *x509.Certificate) bool {
	signs, err := ParseCertificate(id.CAPEM)
	return err == nil && signs.NotAfter.Equal(certificate.NotAfter)
}

// Expires is when the certificate ends; the zero time if it cannot be read.
func (id *Identity) Expires() time.Time {
	certificate, err := ParseCertificate(id.CertPEM)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter
}

func farFromEnd(certificate *x509.Certificate, now time.Time) bool {
	life := certificate.NotAfter.Sub(issuedAt(certificate))
	return now.Add(life / 3).Before(certificate.NotAfter)
}

// issuedAt is when a leaf was made, Authority.sign in reverse: where the cluster's time is ahead of the process's, it begins before that.
func issuedAt(leaf *x509.Certificate) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	byBegin := leaf.NotBefore.Add(min(clockSkewAllowed, life/(clockSkewPartOfLife+1)))
	if byEnd := leaf.NotAfter.Add(-leafValidity); byEnd.After(byBegin) {
		return byEnd
	}
	return byBegin
}
