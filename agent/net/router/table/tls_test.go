package table

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// shown is a certificate that is its own authority, and its PEM.
func shown(t *testing.T) (*x509.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse("spiffe://cluster/ns/a")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: []string{"a.com", "*.b.com"},
		URIs: []*url.URL{uri}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestNamesOfBackends: any of the names will do, the hostname is none of them, and the authority must be right.
func TestNamesOfBackends(t *testing.T) {
	certificate, text := shown(t)
	_, foreign := shown(t)
	for name, test := range map[string]struct {
		names Names
		pem   string
		good  bool
	}{
		"host":              {Names{Hosts: []string{"a.com"}}, text, true},
		"below a wildcard":  {Names{Hosts: []string{"x.b.com"}}, text, true},
		"wildcard":          {Names{Hosts: []string{"*.B.com"}}, text, true},
		"another wildcard":  {Names{Hosts: []string{"*.com"}}, text, false},
		"another host":      {Names{Hosts: []string{"b.com"}}, text, false},
		"one of two":        {Names{Hosts: []string{"b.com", "a.com"}}, text, true},
		"URI":               {Names{URIs: []string{"spiffe://cluster/ns/a"}}, text, true},
		"another URI":       {Names{URIs: []string{"spiffe://cluster/ns/b"}}, text, false},
		"either":            {Names{Hosts: []string{"b.com"}, URIs: []string{"spiffe://cluster/ns/a"}}, text, true},
		"another authority": {Names{Hosts: []string{"a.com"}}, foreign, false},
	} {
		config := NewTLS("other.com", []*Authorities{{PEM: test.pem}}, test.names).Config
		err := config.VerifyConnection(tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}})
		if (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
		if config.VerifyConnection(tls.ConnectionState{}) == nil {
			t.Errorf("%s: nobody is trusted", name)
		}
	}
	if c := NewTLS("a.com", nil, Names{}).Config; c.InsecureSkipVerify || c.VerifyConnection != nil || c.RootCAs != nil {
		t.Errorf("%+v", c)
	}
}

func TestKeysOfTLS(t *testing.T) {
	base := NewTLS("a", []*Authorities{{"x"}}, Names{Hosts: []string{"b"}})
	for name, other := range map[string]*TLS{
		"host": NewTLS("b", []*Authorities{{"x"}}, Names{Hosts: []string{"b"}}), "authority": NewTLS("a", []*Authorities{{"y"}}, Names{Hosts: []string{"b"}}),
		"machine": NewTLS("a", nil, Names{Hosts: []string{"b"}}), "name": NewTLS("a", []*Authorities{{"x"}}, Names{URIs: []string{"b"}}),
	} {
		if other.Key == base.Key {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := NewTLS("a", []*Authorities{{"x"}}, Names{Hosts: []string{"b"}}); again.Key != base.Key {
		t.Error("the same is something else")
	}
}

func TestAuthoritiesOf(t *testing.T) {
	_, text := shown(t)
	for content, good := range map[string]bool{text: true, text + text: true, "": false, "x": false} {
		if _, err := AuthoritiesOf(&corev1.ConfigMap{Data: map[string]string{"ca.crt": content}}); (err == nil) != good {
			t.Errorf("%q: %v", content, err)
		}
	}
}
