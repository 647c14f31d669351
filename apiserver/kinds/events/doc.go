// Package events has the Event of the core group and that of events.k8s.io/v1:
// one stored object under two sets of field names.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata; the generic test of the parent converts both ways.
package events
