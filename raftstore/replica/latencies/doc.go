// Package latencies keeps the durations of the most recent runs of an operation, for percentiles in a status.
//
// It is called by raftstore/replica, for writes to disk and for entries applied. It
// promises a bounded memory, and may be called from any goroutine. A table tests it.
package latencies
