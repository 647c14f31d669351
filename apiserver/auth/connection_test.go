package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// TestAConnectionsCertificateIsReadOnce: the user is that of the certificate now, and an
// expired one lets nobody in although its user is known.
func TestAConnectionsCertificateIsReadOnce(t *testing.T) {
	certificate := func(name string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), Raw: []byte(name)}
	}
	authenticate := auth.NewAuthenticator(nil, nil)
	var named []string
	connection := auth.WithConnection(t.Context(), func(tenant shares.Holder) { named = append(named, tenant.Name) })
	ask := func(c *x509.Certificate) (*authenticator.Response, error) {
		r, err := http.NewRequestWithContext(connection, http.MethodGet, "/api", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{c}}}
		response, _, err := authenticate.AuthenticateRequest(r)
		return response, err
	}
	carol, dave := certificate("carol"), certificate("dave")
	first, err := ask(carol)
	if err != nil || first.User.GetName() != "carol" {
		t.Fatal(first, err)
	}
	if again, err := ask(carol); err != nil || again != first {
		t.Errorf("read again: %v %v", again, err)
	}
	if other, err := ask(dave); err != nil || other.User.GetName() != "dave" {
		t.Errorf("another certificate: %v %v", other, err)
	}
	if back, err := ask(carol); err != nil || back.User.GetName() != "carol" {
		t.Errorf("the first one again: %v %v", back, err)
	}
	carol.NotAfter = time.Now().Add(-time.Second)
	if _, err := ask(carol); !errors.Is(err, auth.ErrCertificateExpired) {
		t.Errorf("expired: %v", err)
	}
	if want := []string{"user carol", "user dave", "user carol"}; !slices.Equal(named, want) {
		t.Errorf("the connection was told to be of %q, want %q", named, want)
	}
}
