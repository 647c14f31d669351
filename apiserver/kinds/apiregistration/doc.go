// Package apiregistration has the kinds of apiregistration.k8s.io/v1: which server
// answers for which version of which group.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata.
package apiregistration
