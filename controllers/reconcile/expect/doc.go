// Package expect owns what a controller knows of its own writes before its cache
// shows them, and how it creates many objects without flooding an API that
// refuses them.
//
// It calls nothing but the API types. An owner is what a controller keeps, such as a ReplicaSet, by its uid; its
// children are the pods that are created and deleted for it.
//
// It promises: each creation that succeeded is expected in the cache by its uid, whether its event comes before its
// answer or after it, and no event of another child is taken for it; Create
// asks an API that refuses for one child first, and doubles only what was
// accepted, across passes too; after a creation that ended without an answer Check says that the API has to be
// asked, since the child may be there or not; an expectation that the cache does not meet in
// Patience is reported by Check, so that a lost event blocks nothing for ever.
// All methods may be called from several goroutines.
//
// Tests: tables, and batches counted in synctest bubbles.
package expect
