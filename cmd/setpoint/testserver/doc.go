// Package testserver is `setpoint testserver`: control planes in memory for tests in any language, by HTTP on a Unix socket.
//
// It owns the requests and their answers, the clusters, and when the process ends: a minute after it was last asked for something, an
// hour if it holds clusters, whose ports it does not watch. Tests reach a cluster with a kubeconfig, which opens a port of loopback.
// It calls the root package, which runs the clusters; Go tests that want them in their own process call setpointtest instead.
//
// Promises: the socket is its user's alone. What a session made ends with its connection, so that a test that is killed leaves nothing.
// What is not understood is refused with one sentence. Everything has ended when Run returns.
//
// Tested by a client on a real socket, in bubbles, and by the script testserver of cmd/setpoint.
package testserver
