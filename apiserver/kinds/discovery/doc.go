// Package discovery has the kinds of discovery.k8s.io/v1: slices of the
// endpoints of a Service.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata, tables beside the code.
package discovery
