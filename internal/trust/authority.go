package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

const (
	// firstAuthority is the subject of the authority that a cluster begins with. Others have a part of the hash of their key behind it, so
	// that who looks for the signer of a certificate by its subject finds one alone.
	firstAuthority      = "setpoint-ca"
	authorityNameDigits = 16
)

// Authority is one certificate of a CA, and its key.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// serving is the authority NodeServing that follows from it; nil of one that was derived itself.
	serving *Authority
}

// ID is the hash by which join tokens name the authority.
func (a *Authority) ID() string { return Pin(a.certificate) }

// makeAuthority makes one that is valid for ten years from now.
func makeAuthority(name string, key *ecdsa.PrivateKey, now time.Time) (*Authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              now.Add(caValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	self := &Authority{certificate: template, key: key}
	der, err := self.sign(template, &key.PublicKey, now, clockSkewAllowed)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return newAuthority(certificate, key)
}

// newAuthority is one of the cluster's, with what follows from it.
func newAuthority(certificate *x509.Certificate, key *ecdsa.PrivateKey) (a *Authority, err error) {
	a = &Authority{certificate: certificate, key: key}
	a.serving, err = a.derive(nodeServingAuthority)
	return a, err
}

func parseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certificate, err := ParseCertificate(certPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority key: %w", err)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, fmt.Errorf("certificate authority: %w: key and certificate do not belong together", ErrBadPEM)
	}
	return newAuthority(certificate, key)
}

// MakeAuthority makes the text of an authority, for AuthorityRing.Add, and how it will be called.
func MakeAuthority(now time.Time) (text []byte, id string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("certificate authority key: %w", err)
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, "", fmt.Errorf("certificate authority key: %w", err)
	}
	sum := sha256.Sum256(public)
	a, err := makeAuthority(firstAuthority+"-"+hex.EncodeToString(sum[:])[:authorityNameDigits], key, now)
	if err != nil {
		return nil, "", err
	}
	text, err = encodeAuthorities([]*Authority{a}, nil)
	return text, a.ID(), err
}

// crossed is a's key and name as signed by another: who believes the other alone believes what a signs while it is shown too.
func (a *Authority) crossed(by *Authority) ([]byte, error) {
	template := &x509.Certificate{
		RawSubject:            a.certificate.RawSubject,
		SubjectKeyId:          a.certificate.SubjectKeyId,
		SerialNumber:          a.certificate.SerialNumber,
		NotBefore:             a.certificate.NotBefore,
		NotAfter:              earlier(a.certificate.NotAfter, by.certificate.NotAfter),
		KeyUsage:              a.certificate.KeyUsage,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if template.NotBefore.Before(by.certificate.NotBefore) {
		template.NotBefore = by.certificate.NotBefore
	}
	return x509.CreateCertificate(rand.Reader, template, by.certificate, a.certificate.PublicKey, by.key)
}

// authorities are those of a CA at one moment. Nobody changes them.
type authorities struct {
	// all are believed, the first signs.
	all []*Authority
	// certPEM are their certificates, behindPEM what servers show behind their own.
	certPEM, behindPEM []byte
	// serving are those that follow from them; nil of derived ones.
	serving *authorities
	// replaced is closed when there are others.
	replaced chan struct{}
}

func authoritiesOf(all []*Authority) *authorities {
	now := &authorities{all: all, replaced: make(chan struct{})}
	var serving []*Authority
	for _, a := range all {
		now.certPEM = append(now.certPEM, encodeCert(a.certificate.Raw)...)
		if a.serving != nil {
			serving = append(serving, a.serving)
		}
	}
	for _, other := range all[1:] {
		if der, err := all[0].crossed(other); err == nil { // without it who believes the other alone has to be told of both
			now.behindPEM = append(now.behindPEM, encodeCert(der)...)
		}
	}
	now.behindPEM = append(now.behindPEM, now.certPEM...)
	if len(serving) == len(all) {
		now.serving = authoritiesOf(serving)
	}
	return now
}

// at is the one with a hash, nil if there is none.
func (now *authorities) at(pin string) *Authority {
	for _, a := range now.all {
		if a.ID() == pin {
			return a
		}
	}
	return nil
}

func (now *authorities) believes(root *x509.Certificate) bool {
	return slices.ContainsFunc(now.all, func(a *Authority) bool { return bytes.Equal(a.certificate.Raw, root.Raw) })
}

// ParseCertificates reads all certificates of a PEM text, of which there is one at least.
func ParseCertificates(text []byte) (all []*x509.Certificate, err error) {
	for rest := bytes.TrimSpace(text); len(rest) > 0; {
		certificate, err := ParseCertificate(rest)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
		_, rest = pem.Decode(rest)
		rest = bytes.TrimSpace(rest)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: CERTIFICATE", ErrBadPEM)
	}
	return all, nil
}
