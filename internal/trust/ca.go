package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// Names that authorization knows.
const (
	GroupServers = "system:setpoint:servers"
	GroupNodes   = "system:nodes"
	GroupMasters = "system:masters"

	serverPrefix = "system:setpoint:server:"
	nodePrefix   = "system:node:"
	adminName    = "admin"
)

const (
	caValidity   = 10 * 365 * 24 * time.Hour
	leafValidity = 365 * 24 * time.Hour
	// clockSkewAllowed is how far back certificates begin, so that a machine whose clock is behind can join; but never more than
	// a part of their life, since their holders renew them when some 80 % of what they say is over.
	clockSkewAllowed    = time.Hour
	clockSkewPartOfLife = 10
	// requestSkewAllowed is that of certificates that users ask for: who asks for an hour gets five minutes more at most, as upstream.
	requestSkewAllowed = 5 * time.Minute
	serialBits         = 127
)

// CA signs the certificates of one cluster. While it is replaced it has several authorities: the first one signs, all are believed
// (AuthorityRing). It is safe for concurrent use.
type CA struct {
	now atomic.Pointer[authorities]
	// founding is the authority that the cluster began with: other secrets follow from its key, and it names the cluster.
	founding *Authority
	// known are all that it has and had.
	known pinList
	// ring is nil of a derived one; follows is then the one from whose authorities those of this one follow.
	ring    *AuthorityRing
	follows *CA
}

// NewCA makes a certificate authority valid for ten years from now.
func NewCA(now time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate authority key: %w", err)
	}
	first, err := makeAuthority(firstAuthority, key, now)
	if err != nil {
		return nil, err
	}
	return caOf([]*Authority{first}, first), nil
}

// ParseCA reads a certificate authority from PEM.
func ParseCA(certPEM, keyPEM []byte) (*CA, error) {
	first, err := parseAuthority(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	return caOf([]*Authority{first}, first), nil
}

// CertPEM are the certificates of all that are believed, the one that signs first; they are no secret.
func (ca *CA) CertPEM() []byte { return ca.current().certPEM }

// KeyPEM is the authority's private key: whoever holds it can do everything in the cluster.
func (ca *CA) KeyPEM() ([]byte, error) { return encodeKey(ca.signing().key) }

// Expires is when the authority ends, and all that it has signed.
func (ca *CA) Expires() time.Time { return ca.signing().certificate.NotAfter }

// Pin is the hash by which join tokens name the authority that signs: hex of SHA-256 over its DER form.
func (ca *CA) Pin() string { return ca.signing().ID() }

// Holds reports whether one of those that are believed has the hash.
func (ca *CA) Holds(pin string) bool { return ca.current().at(pin) != nil }

// ClusterID names the cluster for all time: the hash of the authority that it began with.
func (ca *CA) ClusterID() string { return ca.founding.ID() }

// Pin is the hash of a certificate as it stands in join tokens.
func Pin(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// leaf is what the authority puts into a certificate that is not its own.
type leaf struct {
	commonName string
	groups     []string
	// names are DNS names and IP addresses; empty for clients.
	names []string
	// client and server are what it may be used for.
	client, server bool
}

// issue makes a key and a certificate for it.
func (ca *CA) issue(l leaf, now time.Time) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", l.commonName, err)
	}
	der, err := ca.signLeaf(l, &key.PublicKey, now)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &Identity{CertPEM: encodeCert(der), KeyPEM: keyPEM, CAPEM: ca.CertPEM(), BehindPEM: ca.behindPEM()}, nil
}

func (ca *CA) signLeaf(l leaf, public any, now time.Time) ([]byte, error) {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: l.commonName, Organization: l.groups},
		NotAfter: earlier(now.Add(leafValidity), ca.signing().certificate.NotAfter),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if l.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if l.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, name := range l.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return ca.sign(template, public, now, clockSkewAllowed)
}

func (ca *CA) sign(template *x509.Certificate, public any, now time.Time, skewAllowed time.Duration) ([]byte, error) {
	return ca.signing().sign(template, public, now, skewAllowed)
}

// sign certifies from now on, or from the process's time on where the cluster's is ahead of it: clients of other processes judge by theirs.
func (a *Authority) sign(template *x509.Certificate, public any, now time.Time, skewAllowed time.Duration) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore = earlier(now, time.Now()).Add(-min(skewAllowed, template.NotAfter.Sub(now)/clockSkewPartOfLife))
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// ParseCertificate reads the first certificate of a PEM text.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%w: CERTIFICATE", ErrBadPEM)
	}
	return x509.ParseCertificate(block.Bytes)
}

// blockKey is the type of the PEM block of a private key.
const blockKey = "EC PRIVATE KEY"

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != blockKey {
		return nil, fmt.Errorf("%w: %s", ErrBadPEM, blockKey)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: der}), nil
}
