// Package resourceapi has the kinds of resource.k8s.io/v1: devices that nodes have,
// classes of them, and claims by which pods get them.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. CEL expressions are compiled when they are written; what is stored stays valid.
// Fields behind gates that are off in this release (derived attributes, lists as attributes, what devices take
// of a node) are dropped. Golden files stand in testdata.
package resourceapi
