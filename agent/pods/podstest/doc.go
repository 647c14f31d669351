// Package podstest has a container runtime without containers, for tests.
//
// It owns: sandboxes and containers that exist in memory only and behave as the
// Program of their image says. Used by: the tests of agent, agent/pods and
// agent/api/kubeletapi. It may call: nothing.
//
// Promises: it uses the time package, so it works in synctest bubbles; it sends an event for each change of a
// container; it outlives the agent under test, so that a restart can be played. Tested by its users.
package podstest
