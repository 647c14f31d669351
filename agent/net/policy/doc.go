// Package policy enforces NetworkPolicies for the pods of one node.
//
// It owns what a node knows of policies, pods and namespaces, and when that becomes rules. The agent calls Watch, and
// the network (agent/host's, over the embedded runtime) asks Admit about each pod before it is connected. The meaning of
// policies is agent/net/policy/plan's; agent/net/policy/table gives it to the kernel. It may call client-go.
//
// Promises: a pod is connected once the rules of every policy that was there before it are in force, and not before; where that cannot be
// known it is not connected, and tried again. A change reaches the kernel within settleTime of being seen; the keeper of
// agent/net/network/upkeep has rules made again that somebody removed (Thing). Pods and namespaces are followed only while there is a
// NetworkPolicy, and of them only labels, addresses and named ports are kept. While the API is away the last known state holds, also for an
// agent that starts: it leaves the table of the former one alone until it has read everything.
//
// Tested in a bubble with a fake API and a network that remembers; real packets in the packages below and in
// cmd/setpoint's scripts.
package policy
