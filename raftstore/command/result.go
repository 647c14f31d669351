package command

import "strconv"

// Code is how a command ended. Exactly the commands with OK changed the state.
// The numbers are part of the snapshot and forwarding formats.
type Code uint8

// The codes of results.
const (
	// OK: every operation took effect.
	OK Code = 0
	// PreconditionFailed: Result.FailedOp did not find what it asked for.
	PreconditionFailed Code = 1
	// FenceStale: the command was decided under another leader's term.
	FenceStale Code = 2
	// SessionUnknown: the session was never opened, was closed or was evicted.
	// Whether an earlier try took effect is not known.
	SessionUnknown Code = 3
	// TooOld: the sequence left the session's window of remembered results.
	// Whether an earlier try took effect is not known.
	TooOld Code = 4
	// Rejected: the command breaks a rule of its own form; it can never succeed.
	Rejected Code = 5
)

// String returns the name of the code.
func (c Code) String() string {
	names := [...]string{"OK", "PreconditionFailed", "FenceStale", "SessionUnknown", "TooOld", "Rejected"}
	if int(c) < len(names) {
		return names[c]
	}
	return "Code(" + strconv.Itoa(int(c)) + ")"
}

// Result is the answer to one command, the same on every replica.
type Result struct {
	Code Code
	// Revision is the revision of the last object changed; if none was, the
	// revision of the store when the command was judged. For OpenSession it is
	// the session id.
	Revision uint64
	// Revisions holds one revision for each operation of a command with several,
	// 0 where the operation changed nothing.
	Revisions []uint64
	// Current is the mod revision found where a precondition failed, 0 = absent.
	Current uint64
	// FailedOp is the position of the operation that failed.
	FailedOp int
	// Message says why, for people.
	Message string
}
