package liveness

import (
	"cmp"
	"slices"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/session"
)

// absent is the state of who should gossip and does not, in GossipMember.
const absent = "absent"

// GossipMember is one member of the gossip pool.
type GossipMember struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	State string `json:"state"`
}

// GossipMembers are the members of the pool as this server sees them, and, as absent,
// the servers and the nodes with a session that are not in it; none without gossip.
func (l *Liveness) GossipMembers() []GossipMember {
	if l.config.Gossip == nil {
		return nil
	}
	var members []GossipMember
	known := map[GossipMember]bool{}
	add := func(name string, role gossip.Role, state string) {
		if id := (GossipMember{Name: name, Role: string(role)}); !known[id] {
			known[id] = true
			members = append(members, GossipMember{Name: name, Role: string(role), State: state})
		}
	}
	if l.pool != nil {
		for _, m := range l.pool.Members() {
			add(m.Name, m.Role, m.State.String())
		}
	}
	for _, server := range l.config.Members() {
		add(server.Name, gossip.RoleServer, absent)
	}
	for node, entry := range l.table.Entries() {
		if entry.State == session.Alive || entry.State == session.Quiet {
			add(node, gossip.RoleNode, absent)
		}
	}
	slices.SortFunc(members, func(a, b GossipMember) int {
		return cmp.Or(cmp.Compare(b.Role, a.Role), cmp.Compare(a.Name, b.Name))
	})
	return members
}
