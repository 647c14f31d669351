package trust

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// loadOrMakeCA writes the key before the certificate: a certificate on disk has its key.
func loadOrMakeCA(dir string, now time.Time) (*CA, error) {
	certPath, keyPath := filepath.Join(dir, fileCACert), filepath.Join(dir, fileCAKey)
	if ca, err := loadAuthorities(dir); err != nil || ca != nil {
		return ca, err
	}
	certPEM, err := os.ReadFile(certPath)
	if errors.Is(err, fs.ErrNotExist) {
		return makeCA(certPath, keyPath, now)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, err
	}
	ca, err := ParseCA(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	ca.keptIn(dir)
	return ca, nil
}

func makeCA(certPath, keyPath string, now time.Time) (*CA, error) {
	ca, err := NewCA(now)
	if err != nil {
		return nil, err
	}
	keyPEM, err := ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	if err := secretfile.Write(keyPath, keyPEM, secretfile.Secret); err != nil {
		return nil, err
	}
	ca.keptIn(filepath.Dir(certPath))
	return ca, secretfile.Write(certPath, ca.CertPEM(), secretfile.Public)
}

// loadOrIssue returns the identity on disk if it is good for names and not near its end, else a fresh one.
func (c *Cluster) loadOrIssue(certPath, keyPath string, names []string, now time.Time, issue func() (*Identity, error)) (*Identity, error) {
	if c.inMemory() {
		return issue()
	}
	id, err := c.readIdentity(certPath, keyPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && c.fresh(id, names, now) {
		return id, nil
	}
	if id, err = issue(); err != nil {
		return nil, err
	}
	if err := saveIdentity(id, certPath, keyPath); err != nil {
		return nil, err
	}
	return id, nil
}

// saveIdentity writes the key first: a certificate on disk has its key, or is made anew.
func saveIdentity(id *Identity, certPath, keyPath string) error {
	if err := secretfile.Write(keyPath, id.KeyPEM, secretfile.Secret); err != nil {
		return err
	}
	return secretfile.Write(certPath, id.CertPEM, secretfile.Public)
}

func (c *Cluster) readIdentity(certPath, keyPath string) (*Identity, error) {
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, err
	}
	return &Identity{CertPEM: certPEM, KeyPEM: keyPEM, CAPEM: c.CA.CertPEM(), BehindPEM: c.CA.behindPEM()}, nil
}

// fresh reports whether an identity belongs to this authority, is a matching pair (a crash
// between the two writes leaves none), covers names and needs no renewal.
func (c *Cluster) fresh(id *Identity, names []string, now time.Time) bool {
	if _, _, err := id.config(); err != nil {
		return false
	}
	certificate, err := ParseCertificate(id.CertPEM)
	if err != nil || !c.CA.hasSigned(certificate) {
		return false
	}
	return covers(certificate, names) && id.isFresh(certificate, now)
}

func covers(certificate *x509.Certificate, names []string) bool {
	for _, name := range names {
		if certificate.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}
