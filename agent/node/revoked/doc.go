// Package revoked keeps an agent told of who is shut out of the cluster.
//
// It owns the watch of the list (package internal/revocation) that an agent holds, the file below the data directory in which the last one
// is kept, and hands each list to the agent's Judge. The kubelet's port, the gossip pool and what calls servers ask that. It calls the API
// with the node's own client; a node may read that one ConfigMap.
//
// Promises: a change is known as soon as its watch brings it. While the servers cannot be reached, and after a restart until they say
// something else, the last list counts.
//
// Tested with client-go's fake client.
package revoked
