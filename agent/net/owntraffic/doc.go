// Package owntraffic says which traffic of a node is the cluster's own: to servers, to agents, and between them.
//
// It owns the list of addresses at which the cluster's own programs are reached, and tells it to the network, which neither translates nor
// refuses what is sent there, whatever Services claim: otherwise an object in the store could cut a node off from those who would tell it
// that the object is gone. It is told before the first connection to a server, and when nodes or servers change. It may call
// agent/net/network's types and the resolver.
//
// The list has: each server of the flags, at the addresses that its name has, and each that the API tells; the same ports at all addresses
// of this machine, since a server may run here; the ports of agents, gossip and tunnels at this machine and at the addresses of all nodes.
// What a node says of its ports counts for nobody: a stolen node could take a port from the Services of all others.
//
// Promises: it does not wait for the API. A name that cannot be resolved keeps the addresses that it had. What does not change is not
// told again. Tested: Keeper in a bubble; the network's rules in agent/net/network.
package owntraffic
