// Package lists compares lists of this program with those that upstream keeps in its source: a new version of upstream fails here until
// somebody has decided what becomes of what it adds.
//
// Upstream's files are read, not linked, so the tests take a moment. They say which row is missing, and where it belongs.
package lists
