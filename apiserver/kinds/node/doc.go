// Package node has the kinds of node.k8s.io/v1: runtime classes. Node itself is a
// kind of the core group.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files
// stand in testdata.
package node
