// Package storage has the kinds of storage.k8s.io/v1: classes of volumes, what CSI
// drivers tell of themselves and of nodes, and which volume is attached where.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package storage
