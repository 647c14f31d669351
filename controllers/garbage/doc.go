// Package garbage owns the deletion of objects whose owners are gone, and the
// two finalizers by which an owner waits for its dependents (foregroundDeletion)
// or lets go of them (orphan).
//
// Reads: every monitored kind. Writes: deletes objects of any kind; the fields
// .metadata.ownerReferences and .metadata.finalizers.
// Owns: the finalizers foregroundDeletion and orphan.
//
// There is no separate graph of owners: two indexes on each monitor, by uid and by the owner's uid, replace it,
// and so cannot disagree with the cache.
//
// It promises: an object is deleted only after a read through the API found every owner absent, and only in the
// version in which its owners were read; the cache alone never decides a deletion. An owner is what has the kind,
// the name and the uid of the reference, in the object's own namespace unless its kind has none: whatever has only
// the uid is not the owner, and a reference to another namespace is reported. While the kind of an owner is not
// served, its dependents are kept, as is an object without a namespace whose owner has one. Nothing is written when
// nothing has changed.
//
// Tests: classification as tables; the whole controller in synctest bubbles over
// client-go's fakes.
package garbage
