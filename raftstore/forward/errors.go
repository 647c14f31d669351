package forward

import (
	"errors"
	"fmt"
)

var (
	// ErrNotProposed: the command is in no log and will never take effect.
	ErrNotProposed = errors.New("command not proposed")
	// ErrOverloaded: too many commands wait. It wraps ErrNotProposed.
	ErrOverloaded = fmt.Errorf("%w: too many commands wait", ErrNotProposed)
	// ErrNoSpace: there is no room for it, on most disks or in the leader's memory. It wraps ErrNotProposed.
	ErrNoSpace = fmt.Errorf("%w: too little room", ErrNotProposed)
	// ErrOutcomeUnknown: the command may have taken effect, or may yet.
	ErrOutcomeUnknown = errors.New("outcome of the command unknown")
	// ErrNotLeading: only the leader changes the membership, and it was not reached.
	ErrNotLeading = errors.New("the leader was not reached")
	// ErrUnsafe: the change of membership could cost the quorum, or a live server
	// its place.
	ErrUnsafe = errors.New("not safe now")
	// ErrUnknownServer: no member has the name.
	ErrUnknownServer = errors.New("no such member")
	// ErrNameTaken: a member at another address has the name.
	ErrNameTaken = errors.New("the name is taken")
	// ErrBadChange: the change makes no sense.
	ErrBadChange = errors.New("bad change of membership")
)
