// Package core has the kinds of the core group, version v1: Pods, Services, ConfigMaps, Nodes and so on.
//
// Each kind is one file, with _validate and _columns beside it where it is long. Only the list of kinds
// (apiserver/kinds) calls this package (Kinds, AddPodOptions). Functions are pure and behave as the parent
// package promises. Events are in kinds/events, since two groups share them. Golden files stand in testdata,
// tables beside the code.
package core
