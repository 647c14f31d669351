// Package job owns the pods of each Job: it creates them until enough have succeeded or too many have failed, counts
// each one that ended, and tells how the Job ended.
//
// Reads: Jobs, Pods. Writes: Pods (create, delete, ownerReferences, finalizers), Job status, Events.
// Owns these fields: Job .status (all of it), unless .spec.managedBy names another controller; on pods that it creates,
// .metadata.generateName, .metadata.ownerReferences, the finalizer batch.kubernetes.io/job-tracking, the annotations and
// the label of the completion index, .spec.hostname and the variable JOB_COMPLETION_INDEX of pods with an index.
//
// It promises: each pod that ended is counted once, whatever write fails and whoever leads. The finalizer keeps a pod in
// the store until the status lists it as uncounted, and the list keeps it until it is in the count (account.go). There
// are never more active pods than wanted, also while caches lag behind own writes. What decides the end of a Job is
// written before its last pods go. Nothing is written when nothing has changed, and a Job that has ended is left alone.
// The pauses after failures survive a change of leaders as far as the failed pods are still there.
//
// A second loop takes the finalizer from pods whose Job is gone or has ended, so that they can be deleted.
//
// Tests: indexes, policies, pauses, plan and account as tables; the whole controller in synctest bubbles over client-go's
// fake clientset; exact counts with faults between any two writes on generated Jobs.
package job
