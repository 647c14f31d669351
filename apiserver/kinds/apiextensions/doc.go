// Package apiextensions has the kinds of apiextensions.k8s.io/v1: definitions of
// custom resources.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Defaults and rules are the published ones, on the internal type as upstream runs
// them. What a definition leads to is not here: apiserver/crd serves it, and
// controllers/crd judges its names and cleans up behind it. Functions are pure and
// behave as the parent package promises. Golden files stand in testdata.
package apiextensions
