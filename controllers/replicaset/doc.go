// Package replicaset owns the number of pods of each ReplicaSet: it creates the
// missing ones, deletes the surplus, adopts matching orphans and lets go of pods
// that match no longer.
//
// Reads: ReplicaSets, Pods. Writes: Pods (create, delete, ownerReferences),
// ReplicaSet status, Events.
// Owns these fields: ReplicaSet .status (all of it); on pods that it creates,
// .metadata.generateName and .metadata.ownerReferences.
//
// It promises: never more live pods than wished, also when its cache lags behind its own writes (expectations)
// and across a change of leaders (a new term starts from caches that hold everything the old one was
// acknowledged, and the old one's writes are fenced); a pod that is asked to stop is replaced at once; nothing
// that the ReplicaSet does not control is deleted; nothing is written when nothing has changed.
//
// Tests: plan and ranking as tables and generated worlds; the whole controller
// in synctest bubbles over client-go's fake clientset.
package replicaset
