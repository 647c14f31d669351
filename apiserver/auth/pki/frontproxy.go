package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

const (
	// FrontProxyName is who a server is to the servers behind it: they believe it who
	// the user of a request is.
	FrontProxyName = "front-proxy-client"

	frontProxyAuthority = "setpoint-front-proxy-ca"
	groupFrontProxies   = "setpoint:front-proxies"
	// frontProxyKeyTries is how often a derived number may be no key: one try fails once in 2^32.
	frontProxyKeyTries = 8
	keyBytes           = 32
	serialBytes        = 15
)

// FrontProxy is the authority for the certificates by which servers prove to others that
// they pass on requests of users. It must not be the cluster's own: whoever holds any of
// its certificates could then name any user. It is derived from the cluster's authority,
// to the byte, so all servers have the same one without a further file.
func (ca *CA) FrontProxy() (*CA, error) {
	key, err := ca.frontProxyKey()
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("front proxy authority: %w", err)
	}
	sum := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(sum[:serialBytes]),
		Subject:               pkix.Name{CommonName: frontProxyAuthority},
		NotBefore:             ca.certificate.NotBefore,
		NotAfter:              ca.certificate.NotAfter,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(nil, template, template, &key.PublicKey, key) // no randomness: the same on all servers
	if err != nil {
		return nil, fmt.Errorf("front proxy authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	return &CA{certificate: certificate, key: key}, err
}

func (ca *CA) frontProxyKey() (*ecdsa.PrivateKey, error) {
	secret, err := ca.key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("front proxy key: %w", err)
	}
	for try := range frontProxyKeyTries {
		derived, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("%s %d", frontProxyAuthority, try), keyBytes)
		if err != nil {
			return nil, fmt.Errorf("front proxy key: %w", err)
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), derived); err == nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("front proxy key: %w: EC PRIVATE KEY", ErrBadPEM)
}

// IssueFrontProxy makes the client identity of a server towards the servers behind it;
// ca is a FrontProxy.
func (ca *CA) IssueFrontProxy(now time.Time) (*Identity, error) {
	return ca.issue(leaf{commonName: FrontProxyName, group: groupFrontProxies}, now)
}
