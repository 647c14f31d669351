// Package topology runs the policies of a kubelet's topology, CPU and memory manager and ours on the same machines, pods and hints, made
// by chance, and compares what they decide; and each side reads the other's state files. `-machines` says on how many.
//
// The machines are those on which upstream is right: each of their parts has as many CPUs as others of its kind. What else there is (CPUs
// that are offline) is judged by properties in agent/resources/topology/cpus.
package topology
