// Package networking has the kinds of networking.k8s.io/v1: ingresses and their
// classes, network policies, the addresses of Services and where they come from.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package networking
