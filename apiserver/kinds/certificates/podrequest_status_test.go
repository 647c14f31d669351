package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

// issued is a request whose status a signer has just set.
func issued(t *testing.T, change func(template *x509.Certificate)) (request, old *podRequest) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: kindstest.Now, NotAfter: kindstest.Now.Add(2 * time.Hour)}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	old = &podRequest{Spec: certificatesv1.PodCertificateRequestSpec{StubPKCS10Request: stub, MaxExpirationSeconds: new(int32(7200))}}
	request = old.DeepCopy()
	request.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{condition(certificatesv1.PodCertificateRequestConditionTypeIssued)},
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})),
		NotBefore:        &metav1.Time{Time: template.NotBefore}, NotAfter: &metav1.Time{Time: template.NotAfter},
		BeginRefreshAt: &metav1.Time{Time: kindstest.Now.Add(time.Hour)},
	}
	return request, old
}

func condition(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(kindstest.Now)}
}

func TestIssuedCertificates(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: kindstest.Now.Add(d)} }
	foreign, _ := issued(t, func(*x509.Certificate) {})
	for name, test := range map[string]struct {
		certificate func(*x509.Certificate)
		status      func(*certificatesv1.PodCertificateRequestStatus)
		now         time.Duration
		want        string
	}{
		"fine":  {want: ""},
		"chain": {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.CertificateChain += s.CertificateChain }},
		"other key": {status: func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain = foreign.Status.CertificateChain
		}, want: "leaf certificate was not issued to the requested public key"},
		"no chain": {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.CertificateChain = "" }, want: "issued certificate chain must contain at least one certificate"},
		"no rest": {status: func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain += "-----BEGIN X-----\nAAAA\n-----END X-----\n"
		}, want: "issued certificate chain must consist entirely of CERTFICATE PEM blocks"},
		"bad rest": {status: func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain += "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
		}, want: "intermediate certificate does not parse as valid X.509"},
		"bad leaf": {status: func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
		}, want: "leaf certificate does not parse as valid X.509"},
		"other block": {status: func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain = "-----BEGIN X-----\nAAAA\n-----END X-----\n"
		}, want: "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"},
		"no start":    {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.NotBefore = nil }, want: "must be present and consistent with the issued certificate"},
		"other start": {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.NotBefore = at(time.Second) }, want: "must be set to the NotBefore time encoded in the leaf certificate"},
		"other end":   {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.NotAfter = at(time.Second) }, want: "must be set to the NotAfter time encoded in the leaf certificate"},
		"late":        {now: 5 * time.Minute, want: "must be set to within 5 minutes of kube-apiserver's current time"},
		"early":       {now: -5 * time.Minute, want: "must be set to within 5 minutes of kube-apiserver's current time"},
		"soon":        {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.BeginRefreshAt = at(time.Minute) }, want: "must be at least 10 minutes after status.notBefore"},
		"never":       {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.BeginRefreshAt = at(119 * time.Minute) }, want: "must be at least 10 minutes before status.notAfter"},
		"short":       {certificate: func(c *x509.Certificate) { c.NotAfter = kindstest.Now.Add(time.Minute) }, want: "leaf certificate lifetime must be >= 1 hour"},
		"long":        {certificate: func(c *x509.Certificate) { c.NotAfter = kindstest.Now.Add(3 * time.Hour) }, want: "leaf certificate lifetime must be <= spec.maxExpirationSeconds (7200)"},
		"dots":        {certificate: func(c *x509.Certificate) { c.DNSNames = []string{"a..b"} }, want: "leaf certificate's DNSName should not contain '..'"},
		"dot":         {certificate: func(c *x509.Certificate) { c.DNSNames = []string{"a."} }, want: "leaf certificate's DNSName should not start or end with '.'"},
		"bad address": {certificate: func(c *x509.Certificate) { c.EmailAddresses = []string{"nobody"} }, want: "leaf certificate should not contain invalid EmailAddress"},
		"both": {status: func(s *certificatesv1.PodCertificateRequestStatus) {
			s.Conditions = append(s.Conditions, condition("Denied"))
		}, want: `There may be at most one condition with type "Issued", "Denied", or "Failed"`},
		"other":        {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.Conditions[0].Type = "Lost" }, want: `supported values: "Issued", "Denied", "Failed"`},
		"undecided":    {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.Conditions = nil }, want: `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`},
		"denied, full": {status: func(s *certificatesv1.PodCertificateRequestStatus) { s.Conditions[0].Type = "Denied" }, want: "non-condition status fields must be empty when denying or failing the PodCertificateRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			change := test.certificate
			if change == nil {
				change = func(*x509.Certificate) {}
			}
			request, old := issued(t, change)
			if test.status != nil {
				test.status(&request.Status)
			}
			got := ""
			if errs := validatePodRequestStatus(request, old, kindstest.Now.Add(test.now)); len(errs) > 0 {
				got = errs[0].Detail
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOutcomesAreFinal(t *testing.T) {
	request, old := issued(t, func(*x509.Certificate) {})
	old.Status = request.Status
	request = old.DeepCopy()
	if errs := validatePodRequestStatus(request, old, kindstest.Now.Add(time.Hour)); len(errs) > 0 {
		t.Error("no change:", errs)
	}
	request.Status.BeginRefreshAt = nil
	want := []string{"status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"}
	if diff := cmp.Diff(want, kindstest.Messages(validatePodRequestStatus(request, old, kindstest.Now))); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
	failed := &podRequest{Status: certificatesv1.PodCertificateRequestStatus{Conditions: []metav1.Condition{condition("Failed")}}}
	if errs := validatePodRequestStatus(failed, &podRequest{}, kindstest.Now); len(errs) > 0 {
		t.Error("failed:", errs)
	}
}

func TestSmallKeysAreRefused(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[any]string{
		&small.PublicKey: "RSA keys must have modulus size 3072 or 4096",
		&curve.PublicKey: "elliptic public keys must use curve P256, P384, or P521",
		"text":           "unknown public key type; supported types are Ed25519, ECDSA, and RSA",
	} {
		if _, got := keyProblem(key); got != want {
			t.Errorf("%T: %q, want %q", key, got, want)
		}
	}
}
