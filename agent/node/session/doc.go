// Package session owns the control sessions of nodes: the stream that an agent holds to one server to prove
// that it is alive, and what all servers know of all sessions.
//
// Agents run a Client; servers run a Table, a Service that agents connect to, and an Exchange that tells the
// other servers. It may import nothing of ours.
//
// Promises: a session is lost 15 s after the last ping, or 3 s after its stream broke without goodbye unless
// the node came back at any server; a goodbye closes it cleanly. One without a ping for 4.5 s is quiet, which
// counts as lost if gossip also considers the node dead. A node's name comes from its certificate. The server
// that holds a session judges it; when that server falls silent for 15 s, its sessions count as broken at that
// moment. A server without a leader sends its agents elsewhere; which
// servers there are follows SetServers. Agents learn from their server where servers gossip, and which
// voters there are, host:port, and which keys of gossip they are to hold (Ring), and whom to believe (Authorities): each
// message of an agent says what its keys and authorities are called. Nothing is written
// to the log: a table lives in memory and is rebuilt from agents and peers. No clocks are compared: servers
// exchange ages.
//
// Tests: judge as tables; agents, servers and their exchange over HTTP/2 on
// in-memory connections in synctest bubbles.
package session
