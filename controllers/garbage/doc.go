// Package garbage owns the deletion of objects whose owners are gone, and the
// two finalizers by which an owner waits for its dependents (foregroundDeletion)
// or lets go of them (orphan).
//
// It is called by package controllers, once for each leadership term, and calls
// client-go (metadata and discovery clients) and reconcile.
//
// Reads: every monitored kind. Writes: deletes objects of any kind; the fields
// .metadata.ownerReferences and .metadata.finalizers.
// Owns: the finalizers foregroundDeletion and orphan.
//
// The graph of owners is not kept: two indexes on each monitor, by uid and by
// owner's uid, are the graph, and cannot disagree with the cache.
//
// It promises: an object is deleted only after a read through the API found
// every owner absent, by uid, and only in the version in which its owners were
// read; the cache alone never condemns. An owner that is seen to live in another
// namespace counts as no owner at all: it is reported, and no reason to delete. An owner of a
// kind that nobody serves holds its dependents. On an unchanged world nothing is
// written.
//
// Tests: classification as tables; the whole controller in synctest bubbles over
// client-go's fakes.
package garbage
