// Package actions keeps the last actions of the control loops of one server in memory, for who wants to watch them.
//
// It owns the Line, which is one action, and the Log, a ring of LinesMax of them, and of BytesMax bytes. Package server/loops adds
// what loops write, server/parts what they and their server log; server/parts reads, for `kubectl logs`. It calls internal/clip.
//
// It promises: memory is bounded, the oldest lines go first, and a reader is told how many he missed; adding a line formats nothing,
// waits for no reader and writes nothing anywhere; all methods may be called from any goroutine, and those of a nil Log do nothing.
//
// Tests are tables over made-up times, and readers beside writers.
package actions
