// Package mutants asks whether the tests would notice: a list of bugs, each of
// which breaks a promise of the store, and the tests that must catch it.
//
// It owns the list (All) and the way a bug is put into a build: a copy of one
// file in a temporary directory, named by go's -overlay. No product file ever
// holds a mutant. Nobody imports it; `make mutants` runs it.
//
// Promises: a mutant whose text is no longer found exactly once, or that does not
// compile, is an error and not a catch. A new promise of the store brings its
// mutant, and a mutant that survives brings a test.
//
// Tested by `go test`: every mutant still fits the source, and two of them run.
// With the tag mutants all of them run, FOCUS=name one of them.
package mutants
