package setpointtest

import (
	"net/http"
	"time"
)

const (
	// survivable is the fewest servers that write on after one has crashed.
	survivable = 3
	// down is how long a server that crashed is away.
	down = 30 * time.Second
)

// clientsServer is the server to which all clients speak while it runs.
const clientsServer = "server-1"

// lead makes the server that clients speak to the leader, so that a fault's name says all of it: the others crash until
// it is elected.
func (c *Cluster) lead() {
	c.t.Helper()
	for leader := c.Leader(); leader != clientsServer; {
		c.CrashServer(leader)
		next := c.Leader()
		c.StartServer(leader)
		leader = next
	}
}

// leaderMishaps are crashes of the leader between two writes of the program, which itself goes on.
var leaderMishaps = []mishap{
	{"LeaderCrashBefore", func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		w.crashLeader()
		return next.RoundTrip(r)
	}},
	{"LeaderCrash", func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		w.crashLeader()
		return response, err
	}},
	{"LoseAnswer and LeaderCrash", func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := LoseAnswer.send(r, next)
		w.crashLeader()
		return response, err
	}},
}

// crashLeader crashes the server that leads. It comes back in a while, unless the world has ended.
func (w *playing) crashLeader() {
	cluster := w.cluster.current.Load()
	leader := cluster.Leader()
	if leader == "" {
		return // an election goes on: there is none to crash
	}
	if err := cluster.CrashServer(leader); err != nil {
		w.cluster.t.Errorf("setpointtest: LeaderCrash: %v", err)
		return
	}
	back := make(chan struct{})
	timer := time.AfterFunc(down, func() {
		defer close(back)
		if err := cluster.StartServer(w.cluster.ctx, leader); err != nil {
			w.cluster.t.Errorf("setpointtest: LeaderCrash: starting %s again: %v", leader, err)
		}
	})
	w.cluster.t.Cleanup(func() {
		if !timer.Stop() {
			<-back
		}
	})
}
