// Package nodeipam gives each node its part of the pod network (spec.podCIDR), and of that of IPv6 if there is one (spec.podCIDRs).
//
// Reads: Nodes. Writes: Nodes. Owns: Node .spec.podCIDR and .spec.podCIDRs.
//
// It promises: every node gets ranges of the configured sizes, no two nodes the same one, and a node keeps its
// own for life; one that registers anew gets its former ranges if they are free: it asks for them in the annotation
// setpoint.io/former-pod-cidr, "10.42.7.0/24" or "10.42.7.0/24,fd42:0:0:7::/64". spec.podCIDRs never changes once it is set, so a
// node that is older than the range of IPv6 gets its part of that when it is deleted and registers anew. A range of another size, or
// outside the cluster's, counts as none: it takes nothing from others. One worker allocates, from the cache
// plus what it allocated itself and the cache does not show yet; a node that already has a range makes the
// write a conflict. A full range is an event on the node, which is looked at again when another node goes.
// Nothing is written when nothing has changed.
//
// Tests: the choice as a table; the whole controller in synctest bubbles over
// client-go's fake clientset.
package nodeipam
