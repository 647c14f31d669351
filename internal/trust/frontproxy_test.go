package trust

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"
)

func TestFrontProxyIsTheSameOnAllServersAndNotTheCluster(t *testing.T) {
	now := time.Now()
	ca, err := NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	other, err := ParseCA(ca.CertPEM(), keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	here, err := ca.FrontProxy()
	if err != nil {
		t.Fatal(err)
	}
	there, err := other.FrontProxy()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(here.CertPEM(), there.CertPEM()) {
		t.Error("two servers have two authorities")
	}
	id, err := there.IssueFrontProxy(now)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ParseCertificate(id.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	if certificate.Subject.CommonName != FrontProxyName {
		t.Errorf("name %q", certificate.Subject.CommonName)
	}
	verify := func(authority *CA) error {
		roots := x509.NewCertPool()
		roots.AddCert(authority.signing().certificate)
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	if err := verify(here); err != nil {
		t.Errorf("not believed: %v", err)
	}
	if verify(ca) == nil {
		t.Error("the cluster's own authority vouches for a front proxy")
	}
}
