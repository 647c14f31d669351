// Package mutants asks whether the tests would notice: a list of bugs, each of
// which breaks a promise, and the tests that must catch it.
//
// It owns two lists. All has bugs of the store, each with the tests that must fail. Walls has what keeps a pod
// from its node, taken away, each with the page of test/escape that must fail. It also owns the way a bug is put into a build: a
// copy of one file in a temporary directory, named by go's -overlay. No product file ever holds a mutant. Nobody imports
// it; `make mutants` runs it.
//
// With a wall taken away the attack succeeds. So a page runs against a mutant in a cage only (cage.go), which needs root: mount,
// PID, network, IPC, UTS and cgroup namespaces of its own; every file system of the host read-only, and those in memory over
// /tmp, /run and others gone with it; nodes of devices of its own, so that their modes and owners are not the host's; a control
// group of its own, the root of all that it sees. Before the page begins the cage looks whether it is closed, and else ends. No
// namespace has the parameters below /proc/sys/kernel and the like: they are read before a trial, and set back after it. Do not
// run a product with a mutant in any other way.
//
// Promises: a mutant whose text is no longer found exactly once, or that does not
// compile, is an error and not a catch; so is a page that fails with all walls, or a cluster that does not start. A new promise of
// the store, and a new page, brings its mutant. A mutant of the store that survives brings a test. A wall whose page passes
// without it is either not attacked, and the page is mended, or a second wall stops the attack, and the mutant takes both away.
//
// Tested by `go test`: every mutant still fits the source, every page has one, the cage is closed, and two mutants of the store
// run. With the tag mutants all of them run, FOCUS=name one of them, FOCUS=store those of the store, FOCUS=walls the walls.
package mutants
