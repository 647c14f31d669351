// Package topology decides from which NUMA nodes a pod or a container gets its resources, as a kubelet's topology manager does
// (https://kubernetes.io/docs/tasks/administer-cluster/topology-manager).
//
// It owns: sets of NUMA nodes, the hints by which parts of the agent say where they could give a resource from, and the four policies
// that merge them. topology/cpus and topology/memory, below it, give CPUs and memory; agent/resources/devices gives devices. It may call
// nothing of ours.
//
// Promises: no I/O, no clock, no lock; the order of hints has no influence. Hints of many resources are merged in a time that grows with
// their number, not with that of their combinations.
//
// Tested with tables, and in test/differential against upstream's policies on machines and hints by chance.
package topology
