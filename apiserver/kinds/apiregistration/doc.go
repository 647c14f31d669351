// Package apiregistration has the kinds of apiregistration.k8s.io/v1: APIServices, which name the server for a
// version of an API group.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package apiregistration
