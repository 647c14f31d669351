package trust

import (
	"crypto/x509"
	"time"
)

// Sign certifies the key, subject and names of a request that somebody has approved,
// for life from now, or as long as the authority lives, and returns the certificate in PEM. It
// judges nothing: the caller has.
func (ca *CA) Sign(
	request *x509.CertificateRequest,
	usages []x509.ExtKeyUsage,
	keyUsage x509.KeyUsage,
	life time.Duration,
	now time.Time,
) ([]byte, error) {
	der, err := ca.sign(&x509.Certificate{
		Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		EmailAddresses: request.EmailAddresses, URIs: request.URIs,
		NotAfter: earlier(now.Add(life), ca.signing().certificate.NotAfter), KeyUsage: keyUsage, ExtKeyUsage: usages,
		BasicConstraintsValid: true,
	}, request.PublicKey, now, requestSkewAllowed)
	if err != nil {
		return nil, err
	}
	return encodeCert(der), nil
}
