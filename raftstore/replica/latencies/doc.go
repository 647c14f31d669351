// Package latencies keeps the durations of the most recent runs of an operation, and of those under way, for percentiles
// in a status and for who must decide while one lasts.
//
// It promises a bounded memory, and may be called from any goroutine. A table and a bubble test it.
package latencies
