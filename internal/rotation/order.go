package rotation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrTooLate says that the way back is closed.
	ErrTooLate = errors.New("servers have dropped the old one already: wait until it is done, and rotate again")
	// ErrNothing says that there is nothing to abort.
	ErrNothing = errors.New("no rotation is under way")
	// ErrRefused says that a member's settings are in the way.
	ErrRefused = errors.New("the servers cannot rotate it here")
	// ErrTooOld says that a member would not follow.
	ErrTooOld = errors.New("not all members can follow it")
)

// Begin is the state after an order to rotate, and whether that changes something: of one that is under way only how long the old one is
// kept, if that is said. from is what is used now, to what will be.
func (s State) Begin(kind Kind, from, to string, keep *time.Duration, now time.Time) (next State, changed bool, err error) {
	kept, err := kind.kept(keep)
	if err != nil {
		return s, false, err
	}
	if s.UnderWay() {
		changed = keep != nil && s.KeepOld.Duration != kept
		if changed {
			s.KeepOld = metav1.Duration{Duration: kept}
		}
		return s, changed, nil
	}
	return State{
		Kind: kind, Generation: s.Generation + 1, Phase: kind.first(), From: from, To: to, Started: now, Since: now,
		KeepOld: metav1.Duration{Duration: kept},
	}, true, nil
}

// Abort is the state after an order to go back. While the new one is not used it is dropped; otherwise the old one is used again first, and
// the new one is kept as the old one would have been.
func (s State) Abort(now time.Time) (next State, changed bool, err error) {
	switch {
	case !s.UnderWay():
		return s, false, ErrNothing
	case s.Aborted:
		return s, false, nil
	case s.Phase == Drop:
		return s, false, ErrTooLate
	}
	s.Aborted = true
	s = s.In(s.Phase, now)
	switch {
	case s.Kind == Serving: // certificates that were renewed are as good as the old ones
		s.Phase = Done
	case s.Phase == Trust:
		s.Phase, s.From, s.To = Drop, s.To, s.From
	default:
		s.From, s.To = s.To, s.From
	}
	return s, true, nil
}

// In is the state when its next phase begins.
func (s State) In(phase Phase, now time.Time) State {
	s.Phase, s.Since, s.HeldSince, s.HeldIn = phase, now, nil, ""
	return s
}

// Held is the state when all hold what its phase wants: how long that lasts counts from now on.
func (s State) Held(life string, now time.Time) State {
	s.HeldSince, s.HeldIn = new(now.UTC()), life
	return s
}

// Broken is the state when all do not hold any more what its phase wants.
func (s State) Broken() State {
	s.HeldSince, s.HeldIn = nil, ""
	return s
}

// Of is the state as it counts in a life of the cluster: in one that a backup began, all members have to hold what is wanted once more, and
// then for the whole time.
func (s State) Of(life string) State {
	if s.HeldIn != life {
		s.HeldSince, s.HeldIn = nil, ""
	}
	return s
}

// Follows fails with ErrTooOld or ErrRefused, and the names of members that could not follow a rotation. Of one that is away nobody knows:
// it is waited for.
func Follows(kind Kind, members []Member) error {
	for _, m := range members {
		held, why := m.find(kind)
		if why != "" && m.Silent == "" {
			return fmt.Errorf("%w: %s: %s", ErrTooOld, m.Name, why)
		}
		if at := slices.IndexFunc(held.Nodes, func(l Lacking) bool { return l.TooOld }); at >= 0 {
			w := held.Nodes[at].waiting(kind)
			return fmt.Errorf("%w: %s: %s", ErrTooOld, w.Member, w.Why)
		}
	}
	return refuses(kind, members)
}
