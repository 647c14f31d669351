package gossip

import (
	"strings"

	"github.com/hashicorp/memberlist"
)

// metaLeaving is a member's metadata once it is about to leave.
const metaLeaving = "leaving"

// NotifyJoin implements memberlist.EventDelegate.
func (p *Pool) NotifyJoin(n *memberlist.Node) { p.note(memberFrom(n, Alive)) }

// NotifyAlive implements memberlist.AliveDelegate: who was shut out is no member, whatever others say.
func (p *Pool) NotifyAlive(n *memberlist.Node) error {
	role, name, _ := strings.Cut(n.Name, ":")
	return p.revoked(Role(role), name)
}

// revoked says that a member was shut out.
func (p *Pool) revoked(role Role, name string) error {
	if p.config.Revoked == nil {
		return nil
	}
	return p.config.Revoked(role, name)
}

// NotifyLeave implements memberlist.EventDelegate: dead or left.
func (p *Pool) NotifyLeave(n *memberlist.Node) { p.note(memberFrom(n, Dead)) }

// NotifyUpdate implements memberlist.EventDelegate.
func (p *Pool) NotifyUpdate(n *memberlist.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if string(n.Meta) == metaLeaving {
		p.leaving[n.Name] = true
	}
}

// NodeMeta implements memberlist.Delegate.
func (p *Pool) NodeMeta(int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return []byte(metaLeaving)
	}
	return nil
}

// NotifyMsg implements memberlist.Delegate; members send no messages of their own.
func (p *Pool) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate; there are none.
func (p *Pool) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate; there is none.
func (p *Pool) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (p *Pool) MergeRemoteState([]byte, bool) {}
