package trust

import (
	"crypto/x509"
	"io"
	"log/slog"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestCertificatesOfAClusterAheadHaveBegun for who goes by the process's time: clients and servers of other processes.
func TestCertificatesOfAClusterAheadHaveBegun(t *testing.T) {
	now := time.Now().Add(3 * 365 * 24 * time.Hour)
	ca := newCA(t, time.Now())
	proxies := must[*CA](t)(ca.FrontProxy())
	request := must[*x509.CertificateRequest](t)(parseRequest(must[[]byte](t)(NewNodeRequest("n", must[[]byte](t)(NewKey())))))
	for what, text := range map[string][]byte{
		"server":      must[*Identity](t)(ca.IssueServer(testServer, now)).CertPEM,
		"admin":       must[*Identity](t)(ca.IssueAdmin(now)).CertPEM,
		"front proxy": must[*Identity](t)(proxies.IssueFrontProxy(now)).CertPEM,
		"request":     must[[]byte](t)(ca.Sign(request, nil, 0, time.Hour, now)),
		"authority":   newCA(t, now).CertPEM(),
	} {
		if certificate := must[*x509.Certificate](t)(ParseCertificate(text)); certificate.NotBefore.After(time.Now()) {
			t.Errorf("%s: it begins at %s", what, certificate.NotBefore)
		}
	}
}

// TestAServerAheadRenewsOnce: that its certificate begins long before it was made makes it no older.
func TestAServerAheadRenewsOnce(t *testing.T) {
	now := time.Now().Add(3 * 365 * 24 * time.Hour)
	cluster := must[*Cluster](t)(NewCluster(time.Now()))
	k := must[*Keeper](t)(NewKeeper(cluster, testServer, clocktesting.NewFakeClock(now), slog.New(slog.NewTextHandler(io.Discard, nil))))
	if off := k.Issued().Sub(now).Abs(); off > time.Second {
		t.Errorf("its certificate is said to be made %s from when it was", off)
	}
	third := leafValidity / 3
	if k.live.NeedsRenewal(now.Add(leafValidity-third-time.Hour)) || !k.live.NeedsRenewal(now.Add(leafValidity-third+time.Hour)) {
		t.Error("it is not renewed when a third of its life is left")
	}
}
