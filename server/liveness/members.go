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
	var pool []gossip.Member
	if l.pool != nil {
		pool = l.pool.Members()
	}
	var servers, nodes []string
	for _, server := range l.config.Members() {
		servers = append(servers, server.Name)
	}
	for node, entry := range l.table.Entries() {
		if entry.State == session.Alive || entry.State == session.Quiet {
			nodes = append(nodes, node)
		}
	}
	return membersOf(pool, servers, nodes)
}

// membersOf are the members of a pool in which these servers and nodes should be: one that left and is there again without gossip is
// absent.
func membersOf(pool []gossip.Member, servers, nodes []string) (members []GossipMember) {
	known := map[GossipMember]bool{}
	add := func(name string, role gossip.Role, state string) {
		if id := (GossipMember{Name: name, Role: string(role)}); !known[id] {
			known[id] = true
			members = append(members, GossipMember{Name: name, Role: string(role), State: state})
		}
	}
	for _, m := range pool {
		if m.State != gossip.NotMember {
			add(m.Name, m.Role, m.State.String())
		}
	}
	for _, name := range servers {
		add(name, gossip.RoleServer, absent)
	}
	for _, name := range nodes {
		add(name, gossip.RoleNode, absent)
	}
	for _, m := range pool {
		add(m.Name, m.Role, m.State.String())
	}
	slices.SortFunc(members, func(a, b GossipMember) int {
		return cmp.Or(cmp.Compare(b.Role, a.Role), cmp.Compare(a.Name, b.Name))
	})
	return members
}
