// Package durations keeps how long the last runs of something took, for a status.
//
// It is called by raftstore/replica, for writes to disk and for entries applied. It
// promises a bounded memory, and may be called from any goroutine. A table tests it.
package durations
