// Package simulation plays everything above the log on one goroutine: state
// machines, watches, snapshots and the tables of apiserver/storage, on three
// replicas that get one committed log at different times.
//
// It owns World, whose every choice comes from one seed, and the model it is
// judged by: a second, naive state machine that keeps every revision. Tests call
// it; nobody imports it.
//
// Promises: one seed at one commit is one run, to the byte: Run returns a hash
// over every step. Checked at every step: results and state hashes are the same on
// each replica, a retry gets its first result, a revision names one change, lists
// and pages are one cut, watches are ordered, unique, complete and atomic on
// whichever replica they go on, progress never runs ahead, a snapshot has the same
// bytes wherever it was taken, and what a table acknowledged is read by everybody.
//
// Tested by the seeds of each push (SEEDS=n for more), each tenth run twice, and
// by test/mutants.
package simulation
