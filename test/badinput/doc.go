// Package badinput sends everything that a server must refuse to a cluster of three
// whole servers in this process: over real sockets, through create, update, every
// patch and apply, as people, nodes and strangers, and as bytes that are no requests.
//
// Each refusal is a 4xx with a Status, in bounded time. Meanwhile a bystander's
// requests all succeed; afterwards no request has panicked, the replicas hold the same
// state, and no secret that was sent stands in a log. What a single handler decides is
// tested beside it (package apiserver, TestBadInput and TestOddFields).
package badinput
