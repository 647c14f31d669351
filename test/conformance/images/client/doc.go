// Client is curl, nc, dig, nslookup, getent and printenv for the images of the suite, as far as its cases use them; which of
// them, its own name says.
//
// It owns their flags and exit codes: a flag that it does not know is an error. Its user is package images, which puts it
// into every image. Tested against servers of the test; getent, which is the resolver of Go's library, by the suite's own cases.
package main
