package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
)

const (
	nodeServingAuthority = "setpoint-node-serving-ca"

	// derivedKeyTries is how often a derived number may be no key: one try fails once in 2^32.
	derivedKeyTries = 8
	keyBytes        = 32
	serialBytes     = 15
)

// NodeServing is the authority for the certificates with which agents and kubelets
// serve. Only the servers trust it, when they call a node: a certificate that a node
// serves with can therefore not stand for a server, a webhook or anything else that
// clients of the cluster call.
func (ca *CA) NodeServing() (*CA, error) { return &CA{follows: ca}, nil }

// derive makes a further authority for one purpose. Its key follows from the key of this
// one and its certificate is the same to the byte each time, so all servers have it
// without a further file.
func (a *Authority) derive(name string) (*Authority, error) {
	key, err := a.derivedKey(name)
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(sum[:serialBytes]),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             a.certificate.NotBefore,
		NotAfter:              a.certificate.NotAfter,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(nil, template, template, &key.PublicKey, key) // no randomness: the same on all servers
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	return &Authority{certificate: certificate, key: key}, err
}

func (a *Authority) derivedKey(name string) (*ecdsa.PrivateKey, error) {
	secret, err := a.key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", name, err)
	}
	for try := range derivedKeyTries {
		derived, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("%s %d", name, try), keyBytes)
		if err != nil {
			return nil, fmt.Errorf("key of %s: %w", name, err)
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), derived); err == nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("key of %s: %w: EC PRIVATE KEY", name, ErrBadPEM)
}
