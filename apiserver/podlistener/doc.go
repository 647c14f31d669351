// Package podlistener lets pods of a machine reach a server that otherwise listens on loopback only, as in
// `setpoint dev`.
//
// The root package opens it beside the loopback listener, and tells it the addresses of pods. It promises:
// connections from elsewhere are closed before they are served.
//
// Tests: connections from everywhere, without sockets.
package podlistener
