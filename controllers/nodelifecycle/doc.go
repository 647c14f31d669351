// Package nodelifecycle decides whether each node is alive, sets its conditions and taints accordingly, and
// evicts its pods when it is not.
//
// What sessions and gossip know reaches it through the Liveness interface, which server/liveness implements.
//
// Reads: Nodes, Pods, Leases in kube-node-lease, Liveness. Writes: Node status
// conditions, Node taints, pod Ready and DisruptionTarget conditions, pods
// (delete), Events.
// Owns these fields: the conditions Ready, MemoryPressure, DiskPressure and
// PIDPressure of a node that does not report, GossipDegraded always; the taints
// node.kubernetes.io/{not-ready,unreachable,unschedulable,memory-pressure,
// disk-pressure,pid-pressure,network-unavailable}.
//
// It promises: gossip alone never changes a node's readiness or taints; evictions wait out a hold-down and a
// budget for each zone; when all nodes look dead, or many disappear at once, no pod is evicted; a new term
// restarts every deadline, and so does a pause of this process; a node that still writes is not dead; a node
// that returns loses its taints and its pods stay; nothing is written when nothing has changed.
//
// Tests: verdicts, taints, budget and evictions as tables; the whole controller
// in synctest bubbles over client-go's fake clientset.
package nodelifecycle
