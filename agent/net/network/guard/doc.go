// Package guard keeps the bridge of a node's pods to what pods send honestly: containers may send raw frames unless they drop that
// capability. A pod's frames go to the bridge, which routes them past the network policies, and not to another pod; IP and ARP come from
// the pod's own addresses. Nothing else comes: no other protocols, such as tags before a packet, and no frames to groups of switches, which
// reach the machine past its bridge. What claims neighbours of IPv6 is nothing to the bridge: it knows them for good.
//
// It owns the nftables tables setpoint-BRIDGE-guard of the families bridge and inet. agent/net/network calls it, before a pod is connected.
//
// It promises: a pod for which [Guard.Add] returned nil is guarded. Where that cannot be, Add fails, and the next one tries to make the
// whole table: nobody is connected without. The table of a former agent is in force until it is replaced, in one transaction.
//
// Tested here in a network namespace, with as many pods as a node has and more; with forged frames in agent/net/network.
package guard
