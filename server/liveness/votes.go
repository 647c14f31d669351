package liveness

import (
	"time"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
)

const (
	// isolationWindow, isolationMin and isolationPercent define when so many
	// sessions broke together that the control plane is the likelier culprit:
	// more than max(isolationMin, isolationPercent of all) within the window.
	isolationWindow  = 15 * time.Second
	isolationMin     = 2
	isolationPercent = 20
)

// tally counts the views of the servers on each node: dead needs a majority of
// all servers, not only of those that were heard. A server that distrusts its own
// gossip, suspended, reports nobody dead, whatever the others say.
func tally(views map[string]session.View, servers int, suspended bool) map[string]nodelifecycle.GossipState {
	dead := map[string]int{}
	result := map[string]nodelifecycle.GossipState{}
	for _, view := range views {
		for _, o := range view.Opinions {
			result[o.Node] = nodelifecycle.GossipAlive
			if o.Dead && !view.Suspended {
				dead[o.Node]++
			}
		}
	}
	for node, votes := range dead {
		if 2*votes > servers && !suspended {
			result[node] = nodelifecycle.GossipDead
		}
	}
	return result
}

// distrusts reports whether a server that sees this should rather doubt itself:
// less than half of the others alive, or many sessions lost at once. It is pure.
func distrusts(members []gossip.Member, sessions map[string]session.Entry, now time.Time) bool {
	alive, known := 0, 0
	for _, m := range members[min(1, len(members)):] { // the first is the server itself
		switch m.State {
		case gossip.Alive:
			alive, known = alive+1, known+1
		case gossip.Dead:
			known++
		case gossip.NotMember: // it left: no sign of anything
		}
	}
	if 2*alive < known {
		return true
	}
	lost, held := 0, 0
	for _, entry := range sessions {
		switch {
		case entry.State == session.Alive:
			held++
		case (entry.State == session.Lost || entry.State == session.Quiet) && now.Sub(entry.Since) < isolationWindow:
			lost++
		}
	}
	return lost > max(isolationMin, (held+lost)*isolationPercent/100)
}
