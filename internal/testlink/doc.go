// Package testlink is how a test reaches `setpoint testserver`: it finds the server of its binary or starts it, holds a session, and
// asks.
//
// It owns where the binary comes from, the private folder with the sockets and logs, which it tidies, and the sentences for what goes
// wrong. setpointtest/beside calls it. It calls the server through its socket alone: it links no control plane.
//
// Promises: one server for a binary, whoever starts first; another binary has another one. The folder is the user's alone. The server
// is no part of the test's process: it ends when nobody has used it for a minute. One process at a time builds the binary. A session
// ends with the test's process, however that ends, and no goroutine holds it. Nobody waits longer than a named limit.
//
// Tested with folders, locks, processes and a module of its own, which the real go command builds; with clusters by setpointtest/beside.
package testlink
