// Package networking has the kinds of networking.k8s.io/v1: ingresses and their
// classes, network policies, the addresses of Services and where they come from.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata.
package networking
