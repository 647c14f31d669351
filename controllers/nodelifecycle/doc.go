// Package nodelifecycle owns the judgement over nodes: whether a node is alive,
// what its conditions and taints say of it, and when its pods have to go.
//
// It is called by package controllers, once for each leadership term, and calls
// client-go, reconcile and pods. What sessions and gossip know reaches it
// through the Liveness interface, filled by the wiring.
//
// Reads: Nodes, Pods, Leases in kube-node-lease, Liveness. Writes: Node status
// conditions, Node taints, pod Ready and DisruptionTarget conditions, pods
// (delete), Events.
// Owns these fields: the conditions Ready, MemoryPressure, DiskPressure and
// PIDPressure of a node that does not report, GossipDegraded always; the taints
// node.kubernetes.io/{not-ready,unreachable,unschedulable,memory-pressure,
// disk-pressure,pid-pressure,network-unavailable}.
//
// It promises: gossip alone never costs a node anything; evictions wait out a
// hold-down and a budget for each zone; when every node looks bad, or many went
// at once, nobody is evicted; a new term restarts every deadline, and so does a
// pause of this process; a node that still writes is not dead; a node that
// returns loses its taints and its pods stay; on an unchanged world nothing is
// written.
//
// Tests: verdicts, taints, budget and evictions as tables; the whole controller
// in synctest bubbles over client-go's fake clientset.
package nodelifecycle
