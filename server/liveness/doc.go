// Package liveness collects what one server knows about which nodes are alive.
//
// It owns the sessions that agents hold with this server, the exchange of what other servers
// hold, this server's membership in the gossip pool, and the count of all servers' votes. Package
// server makes and runs it, mounts its Services, and hands it to controllers/nodelifecycle,
// whose Liveness it implements. It calls agent/node/session and agent/node/gossip for the protocols
// and server/peers for the way to other servers.
//
// Promises: the servers whose votes count are the voters of the log; gossip counts a node as dead only if the
// majority of the servers says so, and the vote of a server that may itself be isolated does not count;
// readers learn which nodes changed, and writers never wait for them.
//
// Tested by tables, in bubbles, and over real sockets in package server.
package liveness
