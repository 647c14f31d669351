// Package loops shows what the control loops of one server do, and tells their ledger what they write.
//
// It owns the collector of the workqueue_* metrics, under upstream's names, and the Tap, a transport that accounts each accepted write to
// the pass of the loop that made it and adds each write to the actions that `kubectl logs` shows. The Tap stands before the in-process
// door, for one term; the collector is in /metrics. It calls controllers/reconcile only.
//
// Promises: /metrics has the same names, labels and buckets as upstream's kube-controller-manager and kube-scheduler; two texts count as
// one if they differ only in what the server itself sets (resourceVersion, generation, managedFields).
//
// Tested with requests as client-go makes them.
package loops
