// Package reserved says which addresses and ports of a cluster's machines are the cluster's own, so that no Service, load balancer,
// Gateway, host port or endpoint takes them: whoever has the port of a server at its address is asked in its place.
//
// It owns the Book of that, what the Book reads from Nodes and from what the leader tells of the servers (OfNode, OfServers), and
// what objects claim (OfService, OfPod, OfSlice, OfEndpoints).
//
// Servers refuse claims by a Book and agents serve none of what theirs has; controllers give no address that is reserved. It may call
// client-go.
//
// Promises: what a Node says counts at that node's addresses alone; nothing but what it is told, in memory; a Book may be used by several
// goroutines; to ask costs the same whatever the number of machines, Services and claims. Tables test it.
package reserved
