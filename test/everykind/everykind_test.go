package everykind_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/test/everykind"
)

// kindsMin is how many kinds are served at least.
const kindsMin = 50

// TestEveryKindSurvivesItsServers: an object of each kind is the same after each server was killed and came back.
func TestEveryKindSurvivesItsServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		config, err := c.RESTConfig()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // until the leader has defined the kinds of the Gateway API
		client := kubernetes.NewForConfigOrDie(config).Discovery()
		stored, err := everykind.Store(t.Context(), client, "../..")
		if err != nil {
			t.Error(err)
		}
		if len(stored) < kindsMin {
			t.Errorf("only %d kinds were stored", len(stored))
		}
		time.Sleep(time.Minute) // until the controllers have done what there is to do
		if err := stored.Look(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		for _, server := range []string{"server-1", "server-2", "server-3"} {
			if err := c.CrashServer(server); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if err := c.StartServer(t.Context(), server); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			for _, change := range stored.Changed(t.Context(), client) {
				t.Errorf("without %s: %s", server, change)
			}
		}
	})
}
