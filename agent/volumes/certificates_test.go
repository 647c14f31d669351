package volumes

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// signer answers requests after a time, with a certificate that is renewed after 18 of 24 hours.
type signer struct {
	after    time.Duration
	answer   string // a condition type; issued when empty
	requests map[string]*asked
	warnings []string
}

type asked struct {
	at   time.Time
	stub []byte
	gone bool
}

func (s *shelf) RequestCertificate(
	_ context.Context, _ *corev1.Pod, _ *corev1.PodCertificateProjection, stub []byte,
) (*certificatesv1.PodCertificateRequest, error) {
	name := fmt.Sprint("req-", len(s.signer.requests)+1)
	if s.signer.requests == nil {
		s.signer.requests = map[string]*asked{}
	}
	s.signer.requests[name] = &asked{at: time.Now(), stub: stub}
	return &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

func (s *shelf) CertificateRequest(
	_ context.Context, _, name string, limit time.Duration,
) (*certificatesv1.PodCertificateRequest, error) {
	r := s.signer.requests[name]
	if r.gone {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "podcertificaterequests"}, name)
	}
	out := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	left := time.Until(r.at.Add(s.signer.after))
	time.Sleep(max(0, min(left, limit)))
	switch {
	case left > limit:
	case s.signer.answer != "":
		out.Status.Conditions = []metav1.Condition{{Type: s.signer.answer, Reason: "Because", Message: "no"}}
	default:
		out.Status = certificatesv1.PodCertificateRequestStatus{
			Conditions:       []metav1.Condition{{Type: certificatesv1.PodCertificateRequestConditionTypeIssued}},
			CertificateChain: "junk\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)})),
			BeginRefreshAt:   &metav1.Time{Time: time.Now().Add(18 * time.Hour)},
			NotAfter:         &metav1.Time{Time: time.Now().Add(24 * time.Hour)},
		}
	}
	return out, nil
}

// certified is a pod with a certificate, and the manager that mounts it.
func certified(t *testing.T, s *shelf, keyType string) (*Manager, *corev1.Pod) {
	m := New(Config{
		Objects: s, Dirs: podconfig.Dirs{Root: t.TempDir()}, WithoutMounts: true,
		Warn: func(_ *corev1.Pod, reason, _ string) { s.signer.warnings = append(s.signer.warnings, reason) },
	})
	return m, podWith(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		PodCertificate: &corev1.PodCertificateProjection{
			SignerName: "x/y", KeyType: keyType, CredentialBundlePath: "all.pem", KeyPath: "key.pem", CertificateChainPath: "chain.pem",
		},
	}}}})
}

func TestKeysOfCertificates(t *testing.T) {
	for keyType, want := range map[string]x509.PublicKeyAlgorithm{
		"RSA3072": x509.RSA, "RSA4096": x509.RSA, "ECDSAP256": x509.ECDSA, "ECDSAP384": x509.ECDSA, "ECDSAP521": x509.ECDSA,
		"ED25519": x509.Ed25519,
	} {
		t.Run(keyType, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			m, p := certified(t, s, keyType)
			dir := mount(t, m, p)["a"].Path
			request, err := x509.ParseCertificateRequest(s.signer.requests["req-1"].stub)
			if err != nil || request.CheckSignature() != nil || request.PublicKeyAlgorithm != want {
				t.Fatalf("request %+v: %v", request, err)
			}
			key, chain := read(t, dir+"/key.pem"), read(t, dir+"/chain.pem")
			if want, err := x509.MarshalPKIXPublicKey(request.PublicKey); err != nil || !bytes.Equal(publicOf(t, key), want) {
				t.Error("the key is not that of the request", err)
			}
			if read(t, dir+"/all.pem") != key+chain || strings.Contains(chain, "junk") || string(blocks([]byte(chain))[0]) != "req-1" {
				t.Errorf("chain %q", chain)
			}
		})
	}
	if _, _, err := keyAndProof("DSA"); err == nil {
		t.Error("a key type that does not exist was taken")
	}
}

// TestCertificatesAreRenewed from their time of renewal on; the old one stays until then.
func TestCertificatesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{signer: signer{after: 3 * time.Second}}
		m, p := certified(t, s, "ECDSAP256")
		dir := mount(t, m, p)["a"].Path
		first := read(t, dir+"/all.pem")
		for range 17 * 60 { // as the pod's worker does, only less often
			time.Sleep(time.Minute)
			mount(t, m, p)
		}
		if len(s.signer.requests) != 1 || read(t, dir+"/all.pem") != first {
			t.Fatal("renewed too early")
		}
		for range 66 { // with the jitter
			time.Sleep(time.Minute)
			mount(t, m, p)
		}
		if len(s.signer.requests) != 2 || read(t, dir+"/all.pem") == first {
			t.Errorf("%d requests; the first certificate is in use: %v", len(s.signer.requests), read(t, dir+"/all.pem") == first)
		}
		if len(s.signer.warnings) > 0 {
			t.Error(s.signer.warnings)
		}
	})
}

// TestASignerThatDoesNotAnswer holds the first mount for a while, and never a renewal. One request is enough.
func TestASignerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{signer: signer{after: 25 * time.Second}}
		m, p := certified(t, s, "ECDSAP256")
		for range 2 {
			before := time.Now()
			_, err := m.Mount(t.Context(), Input{Pod: p})
			if err == nil || !strings.Contains(err.Error(), "is not issued yet") || time.Since(before) != issueTimeout {
				t.Fatalf("after %v: %v", time.Since(before), err)
			}
		}
		dir := mount(t, m, p)["a"].Path
		first := read(t, dir+"/all.pem")
		s.signer.after = 1000 * time.Hour
		for range 30 * 60 {
			time.Sleep(time.Minute)
			before := time.Now()
			mount(t, m, p)
			if time.Since(before) != 0 {
				t.Fatal("a renewal held the mount")
			}
		}
		if len(s.signer.requests) != 2 || read(t, dir+"/all.pem") != first {
			t.Errorf("%d requests", len(s.signer.requests))
		}
		if !slices.Equal(s.signer.warnings, []string{"CertificateOverdueForRefresh", "CertificateExpired"}) {
			t.Error(s.signer.warnings)
		}
	})
}

func TestRefusedAndLostRequests(t *testing.T) {
	for _, answer := range []string{certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed} {
		s := &shelf{signer: signer{answer: answer}}
		m, p := certified(t, s, "ED25519")
		for range 3 {
			_, err := m.Mount(t.Context(), Input{Pod: p})
			if err == nil || !strings.Contains(err.Error(), `reason="Because", message="no"`) {
				t.Fatal(err)
			}
		}
		if len(s.signer.requests) != 1 || !slices.Equal(s.signer.warnings, []string{answer}) {
			t.Errorf("%d requests, warnings %v; the answer is for good", len(s.signer.requests), s.signer.warnings)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{signer: signer{after: time.Minute}}
		m, p := certified(t, s, "ED25519")
		if _, err := m.Mount(t.Context(), Input{Pod: p}); err == nil {
			t.Fatal("mounted without a certificate")
		}
		s.signer.requests["req-1"].gone = true
		if _, err := m.Mount(t.Context(), Input{Pod: p}); err == nil || !strings.Contains(err.Error(), "appears to have been deleted") {
			t.Fatal(err)
		}
		s.signer.after = 0
		mount(t, m, p)
		if err := m.Unmount(t.Context(), p); err != nil || len(m.certificates.all) != 0 {
			t.Errorf("%v; keys of a pod that is gone: %d", err, len(m.certificates.all))
		}
	})
}

// publicOf is the public part of a private key in PEM.
func publicOf(t *testing.T, key string) []byte {
	t.Helper()
	private, err := x509.ParsePKCS8PrivateKey(blocks([]byte(key))[0])
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.(crypto.Signer).Public())
	if err != nil {
		t.Fatal(err)
	}
	return public
}
