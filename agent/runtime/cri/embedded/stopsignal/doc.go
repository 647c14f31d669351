// Package stopsignal knows the names of signals.
//
// It owns nothing. The signal is one that an image or a pod chose to stop its container with. It calls
// golang.org/x/sys/unix only. It promises a signal for every text: what is no signal's name is SIGTERM. Tested with a
// table.
package stopsignal
