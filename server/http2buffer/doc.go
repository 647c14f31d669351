// Package http2buffer writes the headers and the body of an HTTP/2 answer together.
//
// golang.org/x/net/http2 hands the headers of an answer to the connection before it
// has seen the body, and what is long in pieces of 4 KiB: each costs a record of TLS
// and a system call, which are a tenth of what a small read costs a server. A [conn]
// keeps such a piece until the next one comes, but not longer than holdMax.
//
// The root's server calls [Configure] once. A piece is never dropped, doubled or
// overtaken by another; a failed write shows at the next one. One buffer of 16 KiB is
// held for each connection that is in the middle of an answer, none for an idle one.
// Tested in synctest bubbles, by a property over random
// pieces, and by every test that speaks to a server.
package http2buffer
