package setpointtest

import (
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

const fieldManager = "setpointtest"

// client is what the test asks as the user and in the namespace of the view. It meets no faults and counts as nobody's.
func (c *Cluster) client() *testclient.Client {
	return &testclient.Client{
		Admin: c.asAdmin(), Viewed: c.asViewed(), Manager: fieldManager, Namespace: c.namespace, Kinds: &c.kinds, Timeout: c.timeout,
		Why: c.current.Load().Why,
	}
}

// asAdmin is the test's own client, which meets no faults and counts as nobody's.
func (w *world) asAdmin() *rest.Config {
	config := w.current.Load().ClientConfig(admin())
	config.Transport = own{w, admin()}
	config.WarningHandler = warnings{w}
	return config
}

// asViewed is the same as the user of the view.
func (c *Cluster) asViewed() *rest.Config {
	config := c.asAdmin()
	config.Transport = own{c.world, c.user}
	return config
}
