package session

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
)

var phaseToWire = map[phase]sessionpb.SessionState{
	open:    sessionpb.SessionState_SESSION_STATE_OPEN,
	broken:  sessionpb.SessionState_SESSION_STATE_BROKEN,
	expired: sessionpb.SessionState_SESSION_STATE_EXPIRED,
	closed:  sessionpb.SessionState_SESSION_STATE_CLOSED,
}

var phaseFromWire = map[sessionpb.SessionState]phase{
	sessionpb.SessionState_SESSION_STATE_OPEN:    open,
	sessionpb.SessionState_SESSION_STATE_BROKEN:  broken,
	sessionpb.SessionState_SESSION_STATE_EXPIRED: expired,
	sessionpb.SessionState_SESSION_STATE_CLOSED:  closed,
}

// digest is everything this server knows at first hand.
func (t *Table) digest(view View) *sessionpb.Digest {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sequence++
	now := time.Now()
	d := &sessionpb.Digest{
		Server:        t.server,
		Instance:      t.instance,
		Sequence:      t.sequence,
		Suspended:     view.Suspended,
		GossipAddress: view.Address,
	}
	for node, r := range t.own {
		s := &sessionpb.Session{
			Node: node, Instance: r.instance, Counter: r.counter, State: phaseToWire[r.phase],
			OpenedAgeMilliseconds:  now.Sub(r.opened).Milliseconds(),
			ChangedAgeMilliseconds: now.Sub(r.changed).Milliseconds(),
		}
		if !r.quiet.IsZero() {
			s.Quiet, s.QuietAgeMilliseconds = true, now.Sub(r.quiet).Milliseconds()
		}
		d.Sessions = append(d.Sessions, s)
	}
	for _, o := range view.Opinions {
		d.Opinions = append(d.Opinions, &sessionpb.Opinion{Node: o.Node, Dead: o.Dead})
	}
	return d
}

// merge takes a peer's digest. An older one than the last is ignored.
func (t *Table) merge(d *sessionpb.Digest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[d.GetServer()]
	if p == nil || p.removed {
		return fmt.Errorf("%w: %q", ErrUnknownPeer, d.GetServer())
	}
	now := time.Now()
	if d.GetInstance() == p.instance && d.GetSequence() <= p.sequence {
		return nil
	}
	p.instance, p.sequence, p.heard = d.GetInstance(), d.GetSequence(), now
	p.view = View{Suspended: d.GetSuspended(), Address: d.GetGossipAddress()}
	for _, o := range d.GetOpinions() {
		p.view.Opinions = append(p.view.Opinions, Opinion{Node: o.GetNode(), Dead: o.GetDead()})
	}
	if p.replace(d.GetSessions(), now); len(p.records) > 0 {
		t.fill()
	}
	for node := range p.records {
		t.publish(node, now)
	}
	return nil
}

// replace takes a peer's sessions. What it held and knows nothing of any more
// broke when it restarted; what had ended stays remembered.
func (p *peer) replace(sessions []*sessionpb.Session, now time.Time) {
	told := map[string]bool{}
	for _, s := range sessions[:min(len(sessions), nodesLimit)] {
		told[s.GetNode()] = true
		r := recordFromWire(s, now)
		if was, ok := p.records[s.GetNode()]; ok && was.tells(r) {
			continue // the first estimate of when it was is as good as the next
		}
		p.records[s.GetNode()] = r
	}
	for node, r := range p.records {
		if !told[node] && r.phase == open {
			r.phase, r.changed = broken, now
			p.records[node] = r
		}
	}
}

// tells reports whether another record of a node says the same.
func (r record) tells(other record) bool {
	return r.phase == other.phase && r.instance == other.instance && r.counter == other.counter && r.quiet.IsZero() == other.quiet.IsZero()
}

func recordFromWire(s *sessionpb.Session, now time.Time) record {
	ago := func(milliseconds int64) time.Time {
		return now.Add(-time.Duration(max(0, milliseconds)) * time.Millisecond)
	}
	state, ok := phaseFromWire[s.GetState()]
	if !ok {
		state = broken // a newer server's word for something that is not open
	}
	r := record{
		instance: s.GetInstance(), counter: s.GetCounter(), phase: state,
		opened: ago(s.GetOpenedAgeMilliseconds()), changed: ago(s.GetChangedAgeMilliseconds()),
	}
	if s.GetQuiet() {
		r.quiet = ago(s.GetQuietAgeMilliseconds())
	}
	return r
}
