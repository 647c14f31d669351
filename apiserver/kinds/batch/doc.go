// Package batch has the kinds of batch/v1: Jobs and CronJobs.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises; names of time zones are looked up in the data that is linked in where the machine
// has none. Golden files stand in testdata, tables beside the code.
package batch
