// Package failover sends the requests of agents and servers to servers.
//
// It owns the connections to servers: how long a dial and the beginning of an answer may take, how a dead server is
// noticed, and which server of those that there are now
// is asked next when one cannot be reached or says that it cannot serve. Agents reach servers by
// it, and servers each other. It calls internal/trust, whose identities it shows, and internal/clusterlife, for refusals
// of another life.
//
// Promises: a request is sent again only if no byte of it was sent before, or if a server of another life refused it (421)
// before it read any of it, so nothing happens twice; who is answered 503
// or 504 asks another server next; new connections show the newest certificate. Tested with servers in memory, by package
// server over real sockets, and by the script and compose rings.
package failover
