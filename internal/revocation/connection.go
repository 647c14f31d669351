package revocation

import (
	"crypto/tls"
	"crypto/x509"
	"net"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// OfCertificate is by what the holder of a certificate may be revoked.
func OfCertificate(certificate *x509.Certificate) Identity {
	return Identity{User: certificate.Subject.CommonName, Key: trust.KeyHash(certificate.RawSubjectPublicKeyInfo)}
}

// OfConnection is that of the other side of a connection whose certificate was verified; of others it is nobody's.
func OfConnection(state tls.ConnectionState) Identity {
	if len(state.VerifiedChains) == 0 {
		return Identity{}
	}
	who := OfCertificate(state.VerifiedChains[0][0])
	who.Authority = OfChains(state.VerifiedChains)
	return who
}

// OfChains is the authority at the end of the shortest of a certificate's chains, which were verified.
func OfChains(chains [][]*x509.Certificate) string {
	shortest := chains[0]
	for _, chain := range chains[1:] {
		if len(chain) < len(shortest) {
			shortest = chain
		}
	}
	return string(shortest[len(shortest)-1].SubjectKeyId)
}

// Guard makes connections with a configuration fail if the other side is revoked, beside what it verifies already.
func (j *Judge) Guard(config *tls.Config) {
	verify := config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if verify != nil {
			if err := verify(state); err != nil {
				return err
			}
		}
		return j.Revoked(OfConnection(state))
	}
}

// Watched is a connection that is closed when somebody is revoked.
func (j *Judge) Watched(conn net.Conn, who Identity) net.Conn {
	if j == nil {
		return conn
	}
	return &watched{conn, j.Opened(who, func() { _ = conn.Close() })}
}

type watched struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (w *watched) Close() error {
	w.closed()
	return w.Conn.Close()
}
