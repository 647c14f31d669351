// Package broken has one broken object after the other beside healthy ones, and shows that it stays its owner's problem.
//
// It owns a table. A row is a kind and a way to be broken: a backend or a webhook that nobody answers at, a bad CA bundle,
// a finalizer of nobody, owners in a circle or of a kind that is gone, a status of a megabyte, a value that nobody can
// decode, a name that no client can address. A column is what others do meanwhile: their namespaces end, the collector
// collects, lists and watches answer, a Deployment rolls out. And somebody names the broken object: a condition, an event,
// an answer or a line of the log.
//
// `make test` runs it. A whole control plane with a simulated node plays each row in a synctest bubble, and once more in a
// fork, whose loops find the broken object when they begin. What no client could write is put into the log of a server
// that is stopped; these rows are played on a disk and in real time.
package broken
