package certificatecleaner

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Upstream's limits.
const (
	// answeredLife is how long a request stays after it was issued, denied or failed.
	answeredLife = time.Hour
	// pendingLife is how long one waits for an answer, and after its approval for a certificate.
	pendingLife = 24 * time.Hour
	// podLife is the age at which a request of a pod goes, whatever became of it.
	podLife = 15 * time.Minute
)

// overdue says why a request goes; empty: it stays. It is pure.
func overdue(csr *certificatesv1.CertificateSigningRequest, now time.Time) string {
	if len(csr.Status.Conditions) == 0 && older(csr.CreationTimestamp, pendingLife, now) {
		return "nobody answered it"
	}
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			if older(c.LastUpdateTime, answeredLife, now) {
				return "it was denied"
			}
		case certificatesv1.CertificateFailed:
			if older(c.LastUpdateTime, answeredLife, now) {
				return "it failed"
			}
		case certificatesv1.CertificateApproved:
			if why := approvedOverdue(csr, c.LastUpdateTime, now); why != "" {
				return why
			}
		}
	}
	return ""
}

func approvedOverdue(csr *certificatesv1.CertificateSigningRequest, approved metav1.Time, now time.Time) string {
	issued := len(csr.Status.Certificate) > 0
	switch {
	case issued && older(approved, answeredLife, now):
		return "it was issued"
	case issued && ended(csr.Status.Certificate, now):
		return "its certificate has ended"
	case !issued && older(approved, pendingLife, now):
		return "nobody signed it"
	}
	return ""
}

// older reports whether a time that is set is more than d ago.
func older(t metav1.Time, d time.Duration, now time.Time) bool {
	return !t.IsZero() && now.Sub(t.Time) > d
}

// ended reports whether the first certificate of a PEM text has. One that cannot be read has not.
func ended(certificate []byte, now time.Time) bool {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return false
	}
	chain, err := x509.ParseCertificates(block.Bytes)
	return err == nil && len(chain) > 0 && now.After(chain[0].NotAfter)
}

// podOverdue reports whether a request of a pod goes.
func podOverdue(request metav1.Object, now time.Time) bool {
	return !now.Before(request.GetCreationTimestamp().Add(podLife))
}
