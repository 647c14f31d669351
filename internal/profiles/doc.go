// Package profiles serves Go's profiles of this process at upstream's paths, below /debug/pprof.
//
// Servers and node agents serve them, to whom they let in: nothing here asks who it is. A profile that takes time ends with its
// request; Go makes one profile of the processor and one trace at a time, and refuses a second one with 500.
//
// It is tested with its callers: the paths and who may get them (cmd/setpoint, script metrics).
package profiles
