// Package coordination has the kinds of coordination.k8s.io/v1: leases.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package coordination
