// Package statefulset owns the pods of each StatefulSet: it gives every ordinal its pod, its claims and its turn.
//
// Reads: StatefulSets, Pods, PersistentVolumeClaims, ControllerRevisions. Writes: Pods (create, delete, labels,
// ownerReferences), PersistentVolumeClaims (create, ownerReferences), ControllerRevisions, StatefulSet status, Events.
// Owns these fields: StatefulSet .status (all of it); all of a ControllerRevision that it controls.
//
// It promises: never two pods of an ordinal, because the name is the ordinal's and a pod is only created once the one
// before it is gone; ordered sets create, update and stop one after the other, and wait for each to be available, also
// when caches lag behind own writes; a rolling update makes no more than maxUnavailable pods unavailable and leaves
// ordinals below the partition alone; revisions have upstream's names and data, so that sets move between clusters;
// nothing is written when nothing has changed; a set of two billion replicas costs no memory.
//
// Other than upstream: a set that is being deleted gets no new revision; a claim is created with its owner instead of
// getting it later; a pod is deleted only if it is still the one that was judged; an
// ordered set that shrinks also removes pods that have ended, since they can never become available.
//
// Tests: the plan as tables and in generated worlds; the whole controller in
// synctest bubbles over client-go's fake clientset.
package statefulset
