// Package events has the Event of the core group and that of events.k8s.io/v1:
// one stored object under two sets of field names.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata; the generic test of the parent converts both ways.
package events
