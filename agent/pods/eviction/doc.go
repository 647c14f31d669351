// Package eviction ends pods for which the node has no room: those that use more than they may, and others when the node itself
// runs short of memory, disk or process ids.
//
// It owns: what is measured of the machine and of each pod's files, the conditions MemoryPressure, DiskPressure and PIDPressure,
// and the decision which pods have to go. Whether a pod may start is asked at Admit; the conditions are shown on the Node. It
// may call: agent/pods, through the interface in Config, the runtime for what containers use, and the recorder.
//
// Every ten seconds it looks, as a kubelet does. Pods above a limit of ephemeral-storage or above the size of an emptyDir volume
// go first; only pods that set one are measured. If there are none and a threshold was crossed for its grace period, containers
// that have ended and images that nobody uses are removed from a full disk; if that is not enough, or for anything else, one
// pod is evicted. What it held is waited for before the next look. Thresholds, ranks and messages are upstream's.
//
// Promises: critical and static pods are never evicted. A pod is evicted only for what was measured: what the machine does not
// tell crosses no threshold. What a container puts into its volumes, links included, cannot make the measuring leave them.
//
// Decisions are pure functions, tested with tables; Run in synctest bubbles with a machine made up; measuring on a real file
// system.
package eviction
