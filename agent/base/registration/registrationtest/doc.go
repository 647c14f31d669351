// Package registrationtest serves what a plugin of a node says, on a socket, for tests. Nothing but tests imports it.
package registrationtest
