// Package eviction ends pods that use more of the node than they may.
//
// It also keeps pods away from a node under pressure. Pods that run are not evicted for
// the node's pressure yet.
//
// It owns: what is measured of each pod's files, and the decision which pods have
// to go. Called by: agent.Run; agent/pods
// asks Admit. It may call: agent/pods, through the interface in
// Config, and the runtime for the size of writable layers.
//
// Limits of ephemeral-storage and sizes of emptyDir volumes are enforced by looking
// every ten seconds, as a kubelet does: a pod may exceed them for that long. Only
// pods that set one are measured. The messages are upstream's.
//
// Promises: critical and static pods are never evicted. What a container puts into
// its volumes, links included, cannot make the measuring leave them.
//
// Decisions are pure functions, tested with tables; Run in a synctest bubble with
// measurements made up; measuring on a real file system.
package eviction
