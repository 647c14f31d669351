// Package check judges recorded histories: was anything lost, doubled, read stale or
// torn, or told wrongly to a watcher?
//
// It owns the checkers, each of which is a pure function of one epoch of a history
// and of the log, which is what the epoch's watchers saw of every write. Nothing of the
// product is used: Linear trusts only the answers, the others also the revisions in
// them, so that an error in one view is seen in another. test/consistency calls All.
//
// The rules are those of the Kubernetes API (resourceVersion, watches, lists) and of
// linearizability (Herlihy and Wing 1990); Linear is checked by porcupine. Each checker is
// tested by histories with planted violations, which it must find.
package check
