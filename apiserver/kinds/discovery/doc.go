// Package discovery has the kinds of discovery.k8s.io/v1: slices of the
// endpoints of a Service.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata, tables beside the code.
package discovery
