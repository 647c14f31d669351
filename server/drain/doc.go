// Package drain ends the requests of an HTTP server when it stops.
//
// Package server counts all requests (Count), ties watches and streams to Streams, and calls Close when the
// process stops. It promises, in this order: the server says that it is not ready (Check); it takes no more
// connections and requests; watches and streams end after streamsTimeout, so that their clients go on
// elsewhere; other requests finish, up to requestsTimeout; what runs then is cut.
//
// Tests: bubbles with handlers that block; a write that waits for a webhook, in
// package server.
package drain
