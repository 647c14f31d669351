package liveness

import (
	"cmp"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// UseKeys has the pool use the keys of the ring, which have changed.
func (l *Liveness) UseKeys() error { return l.pool.UseKeys(l.config.Keys.Told().Keys) }

// ring implements session.ServiceConfig.Ring. Who was shut out gets no key that he does not have.
func (l *Liveness) ring(node string) (*session.Ring, session.RingHeld) {
	if l.config.Follows != nil && !l.config.Follows() || l.isRevoked(node) {
		return nil, session.RingHeld{}
	}
	told := l.config.Keys.Told()
	return &session.Ring{Label: told.Label, Keys: told.Keys}, heldOf(told)
}

func heldOf(told trust.GossipKeys) session.RingHeld {
	return session.RingHeld{Label: told.Label, IDs: told.IDs()}
}

// LackingKeys are the nodes with a session at this server whose agents do not hold the keys that it holds.
func (l *Liveness) LackingKeys() []rotation.Lacking {
	return lackingOf(l.sessions.Reports(), heldOf(l.config.Keys.Told()), l.isRevoked)
}

func (l *Liveness) isRevoked(node string) bool {
	return l.config.Revoked.Revoked(revocation.Identity{User: trust.NodeUser(node)}) != nil
}

func lackingOf(reports []session.Reported, want session.RingHeld, revoked func(node string) bool) (all []rotation.Lacking) {
	for _, r := range reports {
		switch {
		case revoked(r.Node):
		case r.Garbled:
			all = append(all, rotation.Lacking{Node: r.Node, Garbled: true})
		case len(r.Held.IDs) == 0:
			all = append(all, rotation.Lacking{Node: r.Node, TooOld: true})
		case r.Held.Label != want.Label || !slices.Equal(r.Held.IDs, want.IDs):
			all = append(all, rotation.Lacking{Node: r.Node})
		}
	}
	return bounded(all)
}

// bounded keeps the first rotation.LackingMax, those that cannot follow before the others, each node once, and says how many there are
// beside.
func bounded(all []rotation.Lacking) []rotation.Lacking {
	slices.SortFunc(all, func(a, b rotation.Lacking) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Node, b.Node))
	})
	all = slices.Compact(all)
	if more := len(all) - rotation.LackingMax; more > 0 {
		all = append(all[:rotation.LackingMax], rotation.Lacking{More: more, TooOld: all[rotation.LackingMax].TooOld})
	}
	return all
}

func rank(l rotation.Lacking) int {
	switch {
	case l.TooOld:
		return 0
	case l.Garbled:
		return 1
	}
	return 2
}

// IsAway reports whether a node that is waited for otherwise holds no session with a server, as far as this one knows. Who was shut out is
// not away: he gets no key when he comes back.
func (l *Liveness) IsAway(node string) bool {
	if l.isRevoked(node) {
		return false
	}
	state := l.table.Node(node).State
	return state != session.Alive && state != session.Quiet
}
