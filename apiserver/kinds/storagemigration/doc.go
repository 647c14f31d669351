// Package storagemigration has the kinds of storagemigration.k8s.io/v1: the wish that
// all objects of a resource are stored anew.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata.
package storagemigration
