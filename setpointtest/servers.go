package setpointtest

import (
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

// leaderLimit is how long an election may take.
const leaderLimit = time.Minute

// Leader is the name of the server that leads; it waits for an election. Servers are named server-1, server-2, ….
func (c *Cluster) Leader() (name string) {
	c.t.Helper()
	c.alive()
	err := testclient.Await(c.ctx, leaderLimit, func() (bool, error) {
		name = c.current.Load().Leader()
		return name != "", nil
	})
	if err != nil {
		c.t.Fatalf("setpointtest: no server leads: more than half of them must run: %v", err)
	}
	return name
}

// CrashServer ends a server as kill -9 does. Clients go to another one, and if it was the leader another is elected. With
// more than half of them gone nothing is written until StartServer.
func (c *Cluster) CrashServer(name string) {
	c.t.Helper()
	c.alive()
	if err := c.current.Load().CrashServer(name); err != nil {
		c.t.Fatalf("setpointtest: CrashServer: %v", err)
	}
}

// StartServer starts a server again that CrashServer ended. It has what was on its disk.
func (c *Cluster) StartServer(name string) {
	c.t.Helper()
	c.alive()
	if err := c.current.Load().StartServer(c.ctx, name); err != nil {
		c.t.Fatalf("setpointtest: StartServer: %v", err)
	}
}

// LeaderCrash does what is asked, and crashes the leader before the answer: between this write and the next. It is an
// Effect for clusters with Config.Replicas 3 or 5.
func (c *Cluster) LeaderCrash() Effect {
	return Effect{"LeaderCrash", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		cluster := c.current.Load()
		if leader := cluster.Leader(); leader != "" {
			if crash := cluster.CrashServer(leader); crash != nil {
				c.log("setpointtest: LeaderCrash: %v", crash)
			}
		}
		if err == nil {
			response.Body.Close()
			err = errLost
		}
		return nil, err
	}}
}
