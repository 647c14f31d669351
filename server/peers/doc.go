// Package peers is how a server reaches the other servers and the agents of nodes.
//
// It owns the connections of Raft (RaftDialer), the clients of the services between servers
// (Clients), the check who may call those (Authorize), the way to a pod (Pods), the way to a node's agent (Kubelets,
// which implements rest.Kubelets), and what nodes say that they use (Summaries, which implements
// usage.Source). Package server hands them to the store, to node liveness and to the API. It calls
// internal/trust, internal/failover and, for nodes without an agent, agent/simulated.
//
// Promises: a server is reached by its name, a node's agent by the node's name and the authority for what nodes
// serve with: an address that somebody lied about leads nowhere. A pod of a node that runs our agent is reached by
// that agent or not at all, so a server needs no route to pods.
//
// Tested by everything that runs more than one server, and by the scripts.
package peers
