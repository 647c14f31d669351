package setpoint

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestNodesRenewByTheClustersTime what they serve with, and when another authority signs.
func TestNodesRenewByTheClustersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := trust.NewCluster(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c := &Cluster{clock: clusterclock.New(0), trust: keys}
		config, keep, err := c.serving("n1")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = keep(t.Context()) }()
		synctest.Wait()
		c.clock.Jump(300 * 24 * time.Hour)
		if left := served(t, config).NotAfter.Sub(c.Clock().Now()); left < 300*24*time.Hour {
			t.Errorf("its certificate has %s left", left)
		}
		text, id, err := trust.MakeAuthority(c.Clock().Now())
		if err == nil {
			_, err = keys.CA.Ring().Add(text)
		}
		if err := errors.Join(err, keys.CA.Ring().Use(id)); err != nil {
			t.Fatal(err)
		}
		if shown := served(t, config); !slices.Contains(keys.CA.KeyIDs()[:2], string(shown.AuthorityKeyId)) {
			t.Error("its certificate is of the authority that signed before")
		}
	})
}

// served is the certificate that a node shows when nobody has anything to do.
func served(t *testing.T, config *tls.Config) *x509.Certificate {
	t.Helper()
	synctest.Wait()
	shown, err := config.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return shown.Leaf
}
