// Package clusterlife keeps a node with the life of the cluster that it has joined.
//
// A life of a cluster begins with its founding, a restore or a recovery (docs/internals/store.md). A node that took
// another cluster of the same certificate authority for its own would end its containers as pods that nobody knows. So
// an agent pins the name of the life: it sends it with each request, in Header. A server of another life refuses the
// request (421), and the agent asks the next server. A server whose life comes of the pinned one, as its trust folder
// says, answers with its own, which the agent pins from then on.
//
// It owns the header, Guard on the server's side and Pin, with its file, on the agent's. Package server, agent/host and
// internal/failover call it; it imports nothing of ours. Servers are believed: the certificate of the connection has
// proved that they are ones. Servers and agents of older releases know nothing of the header and go on as before.
//
// Tested with both sides over HTTP, and with agents' requests to two lives of one cluster.
package clusterlife
