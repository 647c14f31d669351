// Package history records what clients did to a cluster and what it answered.
//
// It owns the record of one operation, of one watch event and of one fault. The
// workload and the nemesis write them, the checkers (test/consistency/check) read
// them, and a kept history is a file of JSON lines. Times are nanoseconds of the
// recording process's monotonic clock since the run began, so that they order
// operations whatever wall clocks say. A Recorder may be used by many goroutines.
package history
