package beside

import (
	"net/http"
	"net/url"
	"time"

	"github.com/setpoint-io/setpoint/internal/testlink"
)

// advanceMax is how much time the server lets pass by one request.
const advanceMax = 7 * 24 * time.Hour

// Advance lets time pass for this cluster alone (objects, tokens, control loops and nodes), in steps of at most 2 s, each of which ends
// when servers, loops and nodes are at rest. The test and the programs of Run go by the process's time.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	c.alive()
	if d < 0 {
		c.t.Fatalf("beside: Advance(%v): time does not go back; fork before, and advance the fork", d)
	}
	for ; d > 0; d -= min(d, advanceMax) {
		step := min(d, advanceMax)
		_, err := c.ask(c.ctx, testlink.AdvanceLimit(step), http.MethodPost, "/advance/"+step.String())
		c.must(err)
	}
}

// KillNode switches a simulated node off, as a power cut does: it renews no Lease and confirms nothing of its pods.
// Simulated nodes are named sim-1, sim-2, ….
func (c *Cluster) KillNode(name string) {
	c.t.Helper()
	c.alive()
	c.switchNode("KillNode", name, "off")
}

// StartNode switches a node on again that KillNode switched off. It is back within ten seconds.
func (c *Cluster) StartNode(name string) {
	c.t.Helper()
	c.alive()
	c.switchNode("StartNode", name, "on")
}

func (c *Cluster) switchNode(method, name, state string) {
	c.t.Helper()
	if _, err := c.ask(c.ctx, testlink.QuickLimit, http.MethodPost, "/nodes/"+url.PathEscape(name)+"/"+state); err != nil {
		c.t.Fatalf("beside: %s: %v", method, err)
	}
}
