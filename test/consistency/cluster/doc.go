// Package cluster runs the three servers that test/consistency examines, and does to them
// what a data centre does.
//
// It owns the interface Cluster and its two forms: Processes, where each server is a
// process, as root in a network namespace of its own behind one bridge, so that nftables can cut and
// lose its packets; and Compose, the containers of `make compose-up`. The nemesis calls
// it, one fault at a time for each server; the workload takes endpoints and dials. What a form
// cannot do it does not list in Can. Close ends everything it started and nothing else.
package cluster
