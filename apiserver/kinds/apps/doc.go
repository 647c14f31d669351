// Package apps has the kinds of apps/v1: what makes pods from a template and
// keeps their number.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// What these kinds share with jobs and replication controllers is in
// kinds/workload. Functions are pure and behave as the parent package promises.
// Golden files stand in testdata, tables beside the code.
package apps
