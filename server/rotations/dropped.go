package rotations

import (
	"errors"
	"slices"

	"github.com/setpoint-io/setpoint/internal/rotation"
)

// ErrDropped says that a rotation that is stored is not followed any more.
var ErrDropped = errors.New("what is stored of the rotation is of before its old key was dropped, as in a backup: nobody trusts that key again; " +
	"begin another rotation to replace the record")

// Forgetter is a Mechanism that may know of a key that it was dropped, and that it is not to be trusted again, whatever is stored.
type Forgetter interface {
	Dropped(fingerprint string) bool
}

// open reads what is stored of a kind. It fails with ErrDropped if that wants what was dropped.
func (r *Rotations) open(kind rotation.Kind, text string) (rotation.State, rotation.Keys, error) {
	state, keys, err := rotation.Read(r.config.Locker, kind, text)
	if err != nil {
		return state, keys, err
	}
	forgetter, ok := r.config.Mechanisms[kind].(Forgetter)
	uses, trusts := state.Wanted()
	if ok && (forgetter.Dropped(uses) || slices.ContainsFunc(trusts, forgetter.Dropped)) {
		return rotation.State{}, nil, ErrDropped
	}
	return state, keys, nil
}
