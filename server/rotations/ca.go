package rotations

import (
	"context"

	"github.com/setpoint-io/setpoint/internal/rotation"
)

// Authorities are the rotation of the certificate authority, beside its KeyRing.
type Authorities struct {
	// Nodes are those with a session at this server that do not hold what it holds, as rotation.Held.Nodes, and those that do.
	Nodes func() (lacking []rotation.Lacking, sure []string)
	// Waits are what is waited for beside the members and the nodes with a session.
	Waits func(ctx context.Context, s rotation.State, members []rotation.Member) []rotation.Waiting
}

// held tells who is sure only while that is asked for.
func (a *Authorities) held(f *followed) (lacking []rotation.Lacking, sure []string) {
	lacking, sure = a.Nodes()
	if f == nil || !f.state.UnderWay() {
		sure = nil
	}
	return lacking, sure
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
