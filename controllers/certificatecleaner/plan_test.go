package certificatecleaner

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// certificate is one that ends then.
func certificate(t *testing.T, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// request was made a hundred days ago, answered then and holds a certificate.
func request(answer certificatesv1.RequestConditionType, answered metav1.Time, certificate []byte) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", CreationTimestamp: ago(2400 * time.Hour)}}
	csr.Status.Certificate = certificate
	if answer != "" {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: answer, LastUpdateTime: answered}}
	}
	return csr
}

func TestOverdue(t *testing.T) {
	const (
		approved, denied, failed = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed
	)
	good, past := certificate(t, now.Add(time.Hour)), certificate(t, now.Add(-time.Second))
	young := request("", metav1.Time{}, nil)
	young.CreationTimestamp = ago(pendingLife)
	pending := request("", metav1.Time{}, nil)
	pending.CreationTimestamp = ago(pendingLife + time.Second)
	unborn := request("", metav1.Time{}, nil)
	unborn.CreationTimestamp = metav1.Time{}
	both := request(approved, ago(time.Minute), nil)
	both.Status.Conditions = append(both.Status.Conditions, request(failed, ago(answeredLife+1), nil).Status.Conditions...)
	for name, c := range map[string]struct {
		csr  *certificatesv1.CertificateSigningRequest
		want string
	}{
		"pending a day":                      {young, ""},
		"pending for more":                   {pending, "nobody answered it"},
		"without a time of creation":         {unborn, ""},
		"denied an hour ago":                 {request(denied, ago(answeredLife), nil), ""},
		"denied before":                      {request(denied, ago(answeredLife+1), nil), "it was denied"},
		"denied, nobody knows when":          {request(denied, metav1.Time{}, nil), ""},
		"failed an hour ago":                 {request(failed, ago(answeredLife), nil), ""},
		"failed before":                      {request(failed, ago(answeredLife+1), nil), "it failed"},
		"issued an hour ago":                 {request(approved, ago(answeredLife), good), ""},
		"issued before":                      {request(approved, ago(answeredLife+1), good), "it was issued"},
		"issued now, ended":                  {request(approved, ago(0), past), "its certificate has ended"},
		"issued now, ends later":             {request(approved, ago(0), good), ""},
		"issued now, no certificate at all":  {request(approved, ago(0), []byte("x")), ""},
		"issued now, no certificate in PEM":  {request(approved, ago(0), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), ""},
		"issued, nobody knows when, ended":   {request(approved, metav1.Time{}, past), "its certificate has ended"},
		"approved, unsigned for a day":       {request(approved, ago(pendingLife), nil), ""},
		"approved, unsigned for more":        {request(approved, ago(pendingLife+1), nil), "nobody signed it"},
		"approved and failed":                {both, "it failed"},
		"answered with a word of its own":    {request("Seen", ago(2400*time.Hour), nil), ""},
		"a certificate nobody had approved":  {request(denied, ago(0), past), ""},
		"in the future, by a server's clock": {request(denied, ago(-time.Hour), nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := overdue(c.csr, now); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestPodOverdue(t *testing.T) {
	for age, want := range map[time.Duration]bool{0: false, podLife - 1: false, podLife: true, 24 * time.Hour: true, -time.Hour: false} {
		request := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(age)}}
		if got := podOverdue(request, now); got != want {
			t.Errorf("after %v: %v, want %v", age, got, want)
		}
	}
}
