// Package backoff counts down the pauses before something that failed is tried
// again: 10 s, doubling to 5 min, forgotten after 10 quiet minutes.
//
// It owns no goroutine and reads no clock: the caller passes the time.
//
// Promises: the first failure costs no pause for a restart; a pause counts from
// the failure, not from the question. Not safe for concurrent use. Tested with a table.
package backoff
