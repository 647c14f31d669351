// Package memory decides from which NUMA nodes a container has its memory, as a kubelet's memory manager does with its policy Static
// (https://kubernetes.io/docs/tasks/administer-cluster/memory-manager).
//
// It owns: how much memory each NUMA node has (read from the files of /sys), what of it is reserved, which container has which blocks,
// the choice of nodes for new ones, and the form of that in a file. The caller keeps the file.
//
// Promises: no lock, no clock, and no I/O but reading the files that it is handed. Nodes are used one by one or in groups, and a node of
// one group is in no other and gives nothing by itself. What is left of a node follows from the blocks alone, so both cannot disagree.
//
// Tested with machines and pods by chance, judged by these properties, and in test/differential against upstream's policy.
package memory
