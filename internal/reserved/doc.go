// Package reserved says which addresses and ports of a cluster's machines are the cluster's own, so that no Service, load balancer,
// Gateway, host port or endpoint takes them: whoever has the port of a server at its address is asked in its place.
//
// It owns the Book of that, what the Book reads from Nodes and from what the leader tells of the servers (OfNode, OfServers), and
// what objects claim (OfService, OfPod, OfSlice, OfEndpoints).
//
// Called by: apiserver/admission, which refuses claims, with the Book that server keeps; agent, which keeps a node's Book and tells of its
// ports; agent/services and agent/router/gateway, which serve none; agent/router, which builds again when the Book changes, and its
// table, which asks which nodes serve Ingresses; controllers/loadbalancer and controllers/gateway, which give none;
// controllers/kubernetesservice, which tells of the servers; agent/host, for the numbers of ports; and cmd/setpoint/nettrace, which says
// what a node would serve. It may call client-go.
//
// Promises: what a Node says counts at that node's addresses alone; nothing but what it is told, in memory; a Book may be used by several
// goroutines; to ask costs the same whatever the number of machines, Services and claims. Tables test it.
package reserved
