// Package nodeipam owns which part of the pod address range each node has.
//
// It is called by package controllers, once for each leadership term, and calls
// client-go and reconcile.
//
// Reads: Nodes. Writes: Nodes. Owns: Node .spec.podCIDR and .spec.podCIDRs.
//
// It promises: every node gets a /24, no two nodes the same one, and a node
// keeps its own for life. One worker allocates, from the cache plus what it
// allocated itself and the cache does not show yet; a node that already has a
// range makes the write a conflict. A full range is an event on the node, which
// is looked at again when another node goes. On an unchanged world nothing is
// written.
//
// Tests: the choice as a table; the whole controller in synctest bubbles over
// client-go's fake clientset.
package nodeipam
