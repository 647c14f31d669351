package setpoint

import (
	"sync"
	"testing"
	"time"
)

// TestListenWhileTheAdministratorIsRenewed: the race detector judges it.
func TestListenWhileTheAdministratorIsRenewed(t *testing.T) {
	c, err := Start(t.Context(), Config{InMemory: true, APIOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	var renewing sync.WaitGroup
	defer renewing.Wait()
	renewing.Go(func() {
		if err := c.trust.RenewAdmin(time.Now().Add(300 * day)); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Listen(); err != nil {
		t.Fatal(err)
	}
}
