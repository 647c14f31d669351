// Package apiextensions has the kinds of apiextensions.k8s.io/v1: definitions of
// custom resources.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Defaults and rules are the published
// ones, on the internal type as upstream runs them. apiserver/crd serves the custom resources of a definition;
// controllers/crdstatus checks its names and deletes its instances. Functions are pure and behave as the parent
// package promises. Golden files stand in testdata.
package apiextensions
