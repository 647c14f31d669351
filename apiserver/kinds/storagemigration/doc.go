// Package storagemigration has the kinds of storagemigration.k8s.io/v1: requests to store all objects of a
// resource again.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package storagemigration
