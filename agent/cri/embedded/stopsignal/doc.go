// Package stopsignal knows the names of signals.
//
// It owns nothing. Called by the embedded runtime, for the signal that an image or a pod chose to stop its container
// with; it calls golang.org/x/sys/unix only. It promises a signal for every text: what is no signal's name is SIGTERM.
// Tested with a table.
package stopsignal
