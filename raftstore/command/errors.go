package command

import "errors"

var (
	// ErrMalformed reports bytes that are no entry: cut, changed, or never one.
	ErrMalformed = errors.New("malformed log entry")
	// ErrChecksum reports an entry whose CRC-32C does not fit its bytes.
	ErrChecksum = errors.New("log entry checksum mismatch")
	// ErrUnknownFormat reports an entry of a format newer than this binary.
	ErrUnknownFormat = errors.New("unknown log entry format")
	// ErrUnknownOp reports an intact entry with an operation or precondition
	// newer than this binary. The replica must stop: to skip it is to diverge.
	ErrUnknownOp = errors.New("unknown operation in log entry")
	// ErrInvalid reports a command that state would reject.
	ErrInvalid = errors.New("invalid command")
)
