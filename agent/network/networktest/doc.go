// Package networktest gives tests namespaces: those in which all tests of a package run, which are the node, and network namespaces at
// links of it.
//
// It owns what it makes, until the test ends. Called by tests that are root's: TestMain of several packages of the agent and of test/escape
// calls Enter or Main, tests of agent/policy/table and agent/hostfirewall make neighbours. It calls netlink.
//
// It promises: nothing of the machine's own network is changed. Tested by its callers.
package networktest
