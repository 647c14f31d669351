// Package revoked keeps an agent told of who is shut out of the cluster.
//
// It owns the watch of the list (package internal/revocation) that an agent holds, and hands each list to the agent's Judge, which the
// kubelet's port and the gossip pool ask. It calls the API with the node's own client; a node may read that one ConfigMap.
//
// Promises: a change is known as soon as its watch brings it. While the servers cannot be reached the last list counts; until the first
// one is read, after the agent has started, nobody is shut out.
//
// Tested with client-go's fake client.
package revoked
