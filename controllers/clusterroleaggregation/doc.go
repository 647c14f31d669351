// Package clusterroleaggregation fills the ClusterRoles that gather others.
//
// It reads ClusterRoles. It writes, and it owns, the rules of those with an
// aggregationRule: the rules of all roles that its selectors choose, in the order of
// their names, each once. A role whose rule was taken away keeps its last rules, as
// upstream's.
//
// The list in controllers runs it. On an unchanged world it writes nothing. Tested
// with a table of plans and in a bubble.
package clusterroleaggregation
