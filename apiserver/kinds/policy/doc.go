// Package policy has the kinds of policy/v1: budgets of disruptions.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Who honours a budget is rest's eviction. Functions are pure and behave as the
// parent package promises. Golden files stand in testdata.
package policy
