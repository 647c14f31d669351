// Package streams has what commands, attachments and forwarded ports of containers need: a server of loopback URLs, by SPDY or WebSocket,
// for callers of CRI that do not call the runtime itself; sizes of terminals; sockets to ports of pods.
//
// It owns one HTTP server, which begins with the first URL that is asked for: most agents ask for none. What runs in a stream is the
// runtime's. It promises: after Close nothing is served, and nothing begins. Tested here over a socket, and by the runtime's tests with
// real containers.
package streams
