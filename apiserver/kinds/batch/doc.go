// Package batch has the kinds of batch/v1: jobs, and what starts them by the clock.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises; names of time
// zones are looked up in the data that is linked in where the machine has none.
// Golden files stand in testdata, tables beside the code.
package batch
