// Package clusterroleaggregation fills aggregated ClusterRoles: those with an aggregationRule.
//
// It reads ClusterRoles. It writes, and it owns, the rules of those with an
// aggregationRule: the rules of all roles that its selectors choose, in the order of
// their names, each once. A role whose rule was taken away keeps its last rules, as
// upstream's.
//
// The list in controllers runs it. It writes nothing when nothing has changed. Tested with a table of plans and
// in a bubble.
package clusterroleaggregation
