package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	authorityFile = "client-ca.crt"
	// userValidity is how long a certificate of a user is valid, longer than any suite runs.
	userValidity = 7 * 24 * time.Hour
	// clockSkew is how far a clock may be behind this one.
	clockSkew = 5 * time.Minute
	// serialBits is the size of a serial number.
	serialBits = 120
)

var errNotConfigured = errors.New("the users are not configured: call Configure before Start")

// certificates is an Authn whose users have client certificates of an authority of its own.
type certificates struct {
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	dir       string
}

func newCertificates() (*certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	authority, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "envtest users"}, key)
	return &certificates{authority: authority, key: key}, err
}

// Configure implements Authn.
func (c *certificates) Configure(dir string, args *Arguments) error {
	c.dir = dir
	args.Set("client-ca-file", filepath.Join(dir, authorityFile))
	return nil
}

// Start implements Authn.
func (c *certificates) Start() error {
	if c.dir == "" {
		return errNotConfigured
	}
	text, err := certutil.EncodeCertificates(c.authority)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, authorityFile), text, readableByOwner)
}

// AddUser implements Authn.
func (c *certificates) AddUser(user User, base *rest.Config) (*rest.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user.Name, Organization: user.Groups},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(userValidity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, c.authority, &key.PublicKey, c.key)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	if config.CertData, err = certutil.EncodeCertificates(&x509.Certificate{Raw: der}); err != nil {
		return nil, err
	}
	config.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key)
	return config, err
}

// Stop implements Authn.
func (c *certificates) Stop() error { return nil }
