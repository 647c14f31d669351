package setpoint

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/test/everykind"
)

// kindsMin is how many kinds are served at least.
const kindsMin = 50

// TestEveryKindSurvivesItsServers: an object of each kind is the same at each server, while one of them is away that was killed, and after
// it came back.
func TestEveryKindSurvivesItsServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Start(t.Context(), Config{InMemory: true, Replicas: 3})
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
		stored, err := everykind.Store(t.Context(), client, ".")
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
		if asked := eachServer(c); len(asked) != 3 {
			t.Errorf("%d servers are asked, want 3", len(asked))
		}
		for _, server := range []string{"server-1", "server-2", "server-3"} {
			if err := c.CrashServer(server); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			sameEverywhere(t, c, stored, "without "+server)
			if err := c.StartServer(t.Context(), server); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			sameEverywhere(t, c, stored, "with "+server+" again")
		}
	})
}

// sameEverywhere fails if a server that runs has anything else than what is stored.
func sameEverywhere(t *testing.T, c *Cluster, stored everykind.Stored, when string) {
	t.Helper()
	for name, client := range eachServer(c) {
		for _, change := range stored.Changed(t.Context(), client) {
			t.Errorf("%s, %s: %s", when, name, change)
		}
	}
}

// eachServer are clients of the servers that run, each of one of them.
func eachServer(c *Cluster) map[string]discovery.DiscoveryInterface {
	clients := map[string]discovery.DiscoveryInterface{}
	for _, one := range c.replicas.up() {
		inside := one.RESTConfig(&user.DefaultInfo{Name: "admin", Groups: []string{trust.GroupMasters, user.AllAuthenticated}})
		config := &rest.Config{Host: inside.Host, Transport: inside.Transport, QPS: -1}
		clients[one.Status().Name] = kubernetes.NewForConfigOrDie(config).Discovery()
	}
	return clients
}
