// Package lessons is `setpoint dev kill`, `heal` and `advance`: orders that break and mend parts of a cluster to learn on.
//
// It owns what the commands say and print. It orders through package server/admin, of whichever server answers: the process that runs
// the cluster carries it out.
//
// Promises: what servers say is printed without control characters; a cluster that is not one to learn on, or a part that is no simulated
// one, is refused by the server, with the reason.
//
// Tested through the binary by the script lessons, and here: whom advance asks, and which pod is meant.
package lessons
