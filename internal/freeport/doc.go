// Package freeport gives tests loopback ports that nobody else takes.
//
// A test that must know a port before anything listens on it, or that stops a server
// and starts it again at the same port, cannot ask the system for "any port": the system
// may give the same port to another process, as a listener or as the near end of a
// connection, as soon as nobody listens on it. The ports of this package stand below the
// range that Linux uses for that (net.ipv4.ip_local_port_range, 32768 and above), and
// processes that use this package keep out of each other's way: each takes a block of ports and
// holds it, until it ends, by listening on the block's first port.
//
// Only tests and test tools call it. It is tested by itself: a second process cannot get
// a port of the first.
package freeport
