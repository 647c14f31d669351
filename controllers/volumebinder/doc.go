// Package volumebinder binds PersistentVolumeClaims to PersistentVolumes, as upstream's PersistentVolume controller does.
//
// Reads: PersistentVolumeClaims, PersistentVolumes, StorageClasses, Pods (who waits for a claim).
// Writes: PersistentVolumeClaims and PersistentVolumes (update, update of status), events on both.
// Owns, of a volume: spec.claimRef once it is bound, status.phase, status.message, the annotation
// pv.kubernetes.io/bound-by-controller. Of a claim: spec.volumeName unless its creator set it, an absent
// spec.storageClassName when there is a default class, all of status but what a resizer writes, the annotations
// pv.kubernetes.io/bind-completed, pv.kubernetes.io/bound-by-controller and volume(.beta).kubernetes.io/storage-provisioner.
// The scheduler writes volume.kubernetes.io/selected-node and, for claims that wait for their first consumer, claimRef.
//
// It provisions, deletes and cleans nothing: provisioners that run in the cluster do, and are told by the annotations.
// A volume with the policy Recycle fails with an event, and so does one with Delete that no provisioner made.
//
// Binding is four writes: the volume's claimRef, the volume's phase, the claim's volumeName, the claim's status. Each
// carries the version that was decided on, and every state between two of them leads to the same end, so a crash, a
// lost answer or another writer is no case of its own. It promises: no volume is ever bound to two claims, and no claim
// to two volumes; of the volumes that match, the one with the fewest access modes and then the smallest is taken; a
// volume is released, and a claim declared lost, only after the API has confirmed that the other one is gone; nothing is
// written when nothing has changed, and an event is not repeated while its reason is the same.
//
// A pass reads one claim or one volume, plans with a pure function (planClaim, planVolume) and acts. What was written is
// remembered until the cache shows it. Claims choose their volume one after the other, and write side by side.
//
// Tests: tables for both plans and the match, the loops in synctest bubbles, generated worlds against a model of the end
// state, and faults at each single write.
package volumebinder
