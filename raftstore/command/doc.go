// Package command is the language of the replicated log: what one log entry
// says, and how it is written as bytes.
//
// It owns the types Entry, Command, Op and Result, their limits, and the binary
// format. The format can be extended but never changed: logs and peers of an
// older release must stay readable, so golden bytes in testdata pin it.
//
// It calls nothing but the standard library and raftstore/wire.
//
// Promises: Unmarshal(e.Marshal()) gives back e; Unmarshal never panics and allocates no more than a small
// multiple of its input, whatever the bytes; a CRC-32C over the whole entry detects changed bytes; an operation
// that this binary does not know is an error and is never skipped, because a replica that skipped it would
// differ from the others.
//
// Tested by golden bytes, round trips over generated entries, a flip of every
// single byte, and a fuzz target.
package command
