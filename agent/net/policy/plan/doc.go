// Package plan says which packets the NetworkPolicies of a cluster let through on one node.
//
// It owns the meaning of NetworkPolicy: Of makes sets and rules for the pods of a node from Policies, pods and namespaces.
// agent/net/policy calls it and agent/net/policy/table gives what it returns to the kernel. It is pure, and imports
// nothing of ours.
//
// Promises: the same world gives the same Table. A set is named after what selects its members, and a chain after its
// rules, so that a pod that comes or goes changes elements of sets and no rules, however many pods there are.
// As upstream: a pod that a policy selects takes (or sends) only what one of its policies allows; a pod always reaches
// itself; pods on the host's network are neither selected nor peers by label, they are known by their node's address; a named port is
// the number that the receiving pod gives it. A pod has one address or one of each family, and a block is of one.
//
// Tested by a table of the scenarios of upstream's netpol suite, each also against a second reading of the
// specification, packet by packet, and by worlds that are drawn at random.
package plan
