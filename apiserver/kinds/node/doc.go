// Package node has the kinds of node.k8s.io/v1: runtime classes. Node itself is a
// kind of the core group.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package node
