// Package observed reads what a container runtime says about pods.
//
// It owns: the names of the labels and annotations by which the agent finds its own sandboxes and containers
// again after a restart. It may call: CRI list and status calls only.
//
// Promises: a Pod is a snapshot and does not change later; sandboxes and containers are ordered newest first; a
// container removed between list and status is left out, not an error.
//
// Tested through agent/pods, which writes the labels this package reads.
package observed
