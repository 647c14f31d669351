// Package nodeipam gives each node its part of the pod network (spec.podCIDR).
//
// It is called by package controllers, once for each leadership term, and calls
// client-go and reconcile.
//
// Reads: Nodes. Writes: Nodes. Owns: Node .spec.podCIDR and .spec.podCIDRs.
//
// It promises: every node gets a range of the configured size, no two nodes the same one, and a node keeps its
// own for life; one that registers anew gets its former range if that is free. A range of another size, or
// outside the cluster's, counts as none: it takes nothing from others. One worker allocates, from the cache
// plus what it allocated itself and the cache does not show yet; a node that already has a range makes the
// write a conflict. A full range is an event on the node, which is looked at again when another node goes.
// Nothing is written when nothing has changed.
//
// Tests: the choice as a table; the whole controller in synctest bubbles over
// client-go's fake clientset.
package nodeipam
