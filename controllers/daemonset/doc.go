// Package daemonset owns the pods of each DaemonSet: one on every node that fits,
// of the present template in the end, and the history of templates.
//
// What fits a node is judged by the functions of k8s.io/component-helpers that the
// scheduler's plugins use too.
//
// Reads: DaemonSets, ControllerRevisions, Pods, Nodes. Writes: Pods (create,
// delete, ownerReferences, the hash label of duplicates), ControllerRevisions,
// DaemonSet status, Events.
// Owns these fields: DaemonSet .status (all of it); on pods that it creates,
// .metadata.generateName, .metadata.ownerReferences, the labels
// controller-revision-hash and pod-template-generation, the tolerations of daemon
// pods, and the required node affinity, which names the pod's node.
//
// A pass (reconcile) gathers what there is, plans, and acts. The plan is pure: it
// first gives every node the pods that it should have, and only when nothing is
// left to do there does it take the next step of a rollout.
//
// It promises: never two pods on a node but one old and one new during a rollout
// with maxSurge; a rollout never takes an available pod when that makes more nodes
// than maxUnavailable lack one; a pod that fails again and again is replaced after
// growing pauses; nothing is created while the cache lags behind own creations
// (package expect); nothing is written when nothing has changed.
//
// Tests: fit, plan and rollout as tables; generated worlds that end with one pod of
// the present template on every fitting node; the whole controller in synctest
// bubbles over the world of package reconciletest.
package daemonset
