// Package core has the kinds of the core group, version v1: pods and what they
// live among.
//
// Each kind is one file, with _validate and _columns beside it where it is long.
// The list of kinds (apiserver/kinds) calls Kinds and AddPodOptions, nobody else
// calls anything. Functions are pure and behave as the parent package promises.
// Events are in kinds/events, since two groups share them. Golden files stand in
// testdata, tables beside the code.
package core
