package liveness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
)

// TestWhoIsAbsent: who should be in the pool and is not, also if it was and left, as an agent whose release knows none of the keys.
func TestWhoIsAbsent(t *testing.T) {
	pool := []gossip.Member{
		{Name: "s1", Role: gossip.RoleServer, State: gossip.Alive}, {Name: "n1", Role: gossip.RoleNode, State: gossip.Alive},
		{Name: "back", Role: gossip.RoleNode, State: gossip.NotMember}, {Name: "gone", Role: gossip.RoleNode, State: gossip.NotMember},
		{Name: "dead", Role: gossip.RoleNode, State: gossip.Dead},
	}
	want := []GossipMember{
		{"s1", "server", "alive"}, {"s2", "server", absent},
		{"back", "node", absent}, {"dead", "node", "dead"}, {"gone", "node", "left"}, {"n1", "node", "alive"}, {"new", "node", absent},
	}
	if diff := cmp.Diff(want, membersOf(pool, []string{"s1", "s2"}, []string{"n1", "back", "new", "dead"})); diff != "" {
		t.Error(diff)
	}
}
