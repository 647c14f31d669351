package rotations

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/internal/rotation"
)

// Authorities are the rotation of the certificate authority, beside its KeyRing.
type Authorities struct {
	// Nodes are those with a session at this server that do not hold what it holds, as rotation.Held.Nodes, and those that do.
	Nodes func() (lacking []rotation.Lacking, sure []string)
	// Former are the users who have shown this server certificates of an authority that does not sign, and when last. Nil: nobody is noted.
	Former func() map[string]time.Time
	// Waits are what is waited for beside the members and the nodes with a session.
	Waits func(ctx context.Context, s rotation.State, members []rotation.Member) []rotation.Waiting
}

// tell tells who is sure only while that is asked for, and who shows the old one only while the new one signs.
func (a *Authorities) tell(held *rotation.Held, f *followed) {
	held.Nodes, held.Sure = a.Nodes()
	if f == nil || !f.state.UnderWay() {
		held.Sure = nil
	}
	if f != nil && f.state.Phase == rotation.Use && a.Former != nil {
		held.Former = a.Former()
	}
}

// waits is what a rotation waits for beside what members say.
func (r *Rotations) waits(ctx context.Context, s rotation.State, members []rotation.Member) []rotation.Waiting {
	if s.Kind != rotation.CA || r.config.Authorities == nil || !s.UnderWay() {
		return nil
	}
	return r.config.Authorities.Waits(ctx, s, members)
}

// relock seals the states of all other kinds with the authority that signs now, before the former one is dropped. What cannot be read
// stays.
func (r *Rotations) relock(data map[string]string) {
	for kind, text := range data {
		if kind == string(rotation.CA) {
			continue
		}
		again, err := rotation.Relock(r.config.Locker, text)
		if err != nil {
			r.config.Logger.Warn("a rotation cannot be sealed anew", "kind", kind, "err", err)
			continue
		}
		data[kind] = again
	}
}
