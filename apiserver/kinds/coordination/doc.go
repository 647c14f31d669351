// Package coordination has the kinds of coordination.k8s.io/v1: leases.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata.
package coordination
