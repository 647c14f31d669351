// Package nettrace is what `setpoint net trace` says: how a packet goes from a pod to a name, a Service, a pod or an address, and
// what stops it.
//
// It owns the order of the steps and their words. What each step decides it asks of the functions that nodes act by:
// agent/net/dns/records which record answers, agent/net/services which endpoints an address leads to, agent/net/policy/plan what
// NetworkPolicies let through, agent/net/network/plan how nodes reach each other; and why a Service has no endpoints it asks of
// apiserver/explain, as `setpoint why` does. cmd/setpoint calls it with a client of the API.
//
// Where both ends have addresses of both families, both ways are followed: a connection takes one of them.
//
// Promises: Trace is pure but for names that are not the cluster's, which it asks of the function that it is given; it sends no
// packet and changes nothing. It knows what the API says, so a process that does not listen it cannot see, and of rules that somebody
// else made only what the agent of the pod's node tells of them (internal/nodefirewall). Tested as tables, each dead end with
// what mends it, and by the script nettrace against real packets.
package nettrace
