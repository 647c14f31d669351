// Package strangers limits how many connections a server keeps whose clients have not authenticated.
//
// Package server puts a Door before each listener, and reports when the client of a connection is known
// (Known): by a certificate or a token. It promises: unauthenticated connections use at most a part of the
// process's file descriptors, and a new connection is always accepted: beyond the limit the oldest
// unauthenticated one is closed. So idle connections keep out neither clients nor other servers. What an
// unauthenticated client may request, and how long it may be idle, is limited elsewhere.
//
// Tests: listeners without sockets; the attack itself in test/badinput.
package strangers
