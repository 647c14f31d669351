// Package apps has the kinds of apps/v1: Deployments, ReplicaSets, StatefulSets, DaemonSets and
// ControllerRevisions.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). What these kinds share with jobs and
// replication controllers is in kinds/workload. Functions are pure and behave as the parent package promises.
// Golden files stand in testdata, tables beside the code.
package apps
