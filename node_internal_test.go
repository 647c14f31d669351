package setpoint

import (
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestNodesRenewByTheClustersTime what they serve with.
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
		synctest.Wait()
		shown, err := config.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		if left := shown.Leaf.NotAfter.Sub(c.Clock().Now()); left < 300*24*time.Hour {
			t.Errorf("its certificate has %s left", left)
		}
	})
}
