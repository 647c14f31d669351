package trust

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

// TestWhatEndsWithItsAuthorityIsRenewedOnce in the authority's last year: another certificate would end no later. So it is also where the
// cluster's time is ahead of the process's, and of a node, whose agent sees certificates alone.
func TestWhatEndsWithItsAuthorityIsRenewedOnce(t *testing.T) {
	t.Run("server and administrator", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, log := certified(t, t.TempDir(), Server{Name: "server-1", Endpoint: "192.0.2.1:6443"}, time.Now().Add(-caValidity+leafValidity/2))
			synctest.Wait()
			log.Reset()
			admin := s.cluster.Admin
			time.Sleep(time.Until(s.cluster.CA.Expires()) - time.Hour)
			synctest.Wait()
			if renewed := strings.Count(log.String(), "was renewed"); renewed > 0 || s.cluster.Admin != admin {
				t.Errorf("the server's was renewed %d times; the administrator's is the same: %t", renewed, s.cluster.Admin == admin)
			}
		})
	})
	t.Run("ahead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			log := &logText{}
			cluster, clock := must[*Cluster](t)(NewCluster(time.Now())), clusterclock.New(caValidity-leafValidity/4)
			k := must[*Keeper](t)(NewKeeper(cluster, testServer, clock, slog.New(slog.NewTextHandler(log, nil))))
			go k.Run(t.Context())
			time.Sleep(time.Hour)
			synctest.Wait()
			if renewed := strings.Count(log.String(), "was renewed"); renewed > 0 {
				t.Errorf("what was just made was renewed %d times", renewed)
			}
		})
	})
	t.Run("node", func(t *testing.T) {
		now := time.Now()
		ca := newCA(t, now.Add(-caValidity+leafValidity/2))
		keyPEM := must[[]byte](t)(NewKey())
		request := must[*NodeRequest](t)(ParseNodeRequest(must[[]byte](t)(NewNodeRequest("n", keyPEM)), "n"))
		client := must[[]byte](t)(ca.SignNode(request, now))
		serving := must[[]byte](t)(must[*CA](t)(ca.NodeServing()).SignNodeServing(request, "", nil, now))
		node := must[*Node](t)(NewNode(client, serving, keyPEM, ca.CertPEM(), FirstGossipKey(make([]byte, 32))))
		if node.NeedsRenewal(ca.Expires().Add(-time.Hour)) {
			t.Error("it asks for another that ends no later")
		}
		if text, _, err := MakeAuthority(now); err != nil || !node.Believing(append(authorityOf(t, text), ca.CertPEM()...)).NeedsRenewal(ca.Expires().Add(-time.Hour)) {
			t.Errorf("it does not ask for one of the authority that signs now: %v", err)
		}
	})
}

// authorityOf is the certificate of an authority's text.
func authorityOf(t *testing.T, text []byte) []byte {
	t.Helper()
	all, _, err := parseAuthorities(text)
	if err != nil {
		t.Fatal(err)
	}
	return encodeCert(all[0].certificate.Raw)
}
