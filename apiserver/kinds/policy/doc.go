// Package policy has the kinds of policy/v1: PodDisruptionBudgets.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). The eviction subresource
// (apiserver/rest) honours budgets. Functions are pure and behave as the parent package promises. Golden files
// stand in testdata.
package policy
