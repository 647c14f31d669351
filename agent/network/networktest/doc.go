// Package networktest gives tests of the agent network namespaces: one in which all tests of a package run, which is the node, and others
// at links of it.
//
// It owns what it makes, until the test ends. Called by tests of agent/policy/table and agent/hostfirewall, as root. It calls netlink.
//
// It promises: nothing of the machine's own network is changed. Tested by its callers.
package networktest
