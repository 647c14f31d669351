// Package ttl tells nodes, in the annotation node.alpha.kubernetes.io/ttl, for how many seconds they may keep Secrets
// and ConfigMaps before they fetch them again. The larger the cluster, the longer.
//
// Reads: Nodes. Writes: Nodes (patch). Owns: that annotation.
//
// It promises: the seconds and the numbers of nodes at which they change are upstream's, with other numbers for a
// growing than for a shrinking cluster, so that a node more or less does not rewrite all nodes again and again; when they
// change, every node is told at once, where upstream waits for the node's next status; nothing is written when nothing
// has changed.
//
// Tested against a model on generated sizes, and in bubbles.
package ttl
