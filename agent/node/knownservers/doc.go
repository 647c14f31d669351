// Package knownservers keeps which servers the cluster has, for an agent that does not want to be told again.
//
// It owns the list of servers: where an agent was told to begin (--servers), what the servers have told since, and the file
// pki/servers below the data directory, in which that is kept over restarts. Where joining, sessions and requests of the API go is
// decided by it.
//
// Promises: what the servers say replaces what was known before; where the agent was told to begin counts as long as no server has
// answered for a while, so that it finds its way when all that it knew are gone. A list has at most Max servers, each of which is
// host:port. Whoever tells of servers must have proved with its certificate that it is one, which is for the caller to see to; a
// server in the list proves itself again to whoever connects to it. It may import nothing of ours.
//
// Tested with files and in a bubble.
package knownservers
