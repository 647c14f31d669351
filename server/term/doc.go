// Package term is what only the leader runs, for one term of its leadership.
//
// It owns the order of a term: caches catch up, the objects that every cluster has are made,
// then controllers, the scheduler and the leader's own upkeep run until the term ends. Run
// is called once for each server. It calls controllers and the rooms beside it (inprocess,
// caches, monitors); whatever else a term needs of its server stands in Config.
//
// Promises: nothing acts on less than was written in earlier terms; every write carries the
// fence of its term, so that what a former leader still does has no effect.
//
// Tested by whole servers in package server, the scripts and test/consistency.
package term
