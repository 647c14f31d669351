// Package strangers limits how many connections a port keeps whose clients have not shown who they are.
//
// The owner of a port puts a Door before its listener, and reports when the client of a connection is known (Known): by a certificate, a
// token, or whatever else the port asks for.
//
// Where tenants come too, as at the API's port, it is told whose a connection is (KnownAs): then a tenant has his share of all of theirs,
// and with one more he loses his oldest. A connection is of who has said last who he is. Door.Reads is told what comes in, and may let it
// wait: a server divides its processors so (internal/cpushare).
//
// It promises: unauthenticated connections use at most a part of the process's file descriptors, and a new connection
// is always accepted: beyond the limit the oldest unauthenticated one of the same address goes if that has its share
// (internal/shares), or else the oldest of all. So idle connections keep out neither clients nor other servers, and one
// address does not push out the others. What an unauthenticated client may request, and how long it may be idle, is
// limited elsewhere.
//
// Tests: listeners without sockets; the attack itself in test/badinput.
package strangers
