// Package why answers `setpoint why` from one server's own state.
//
// It owns the World that apiserver/explain reads: the objects of the store's tables, custom ones included, what the scheduler's
// plugins say over the server's informers, and which keys of the loops fail, which only the leader knows. It also decides who may
// ask: whoever may get the object. server/admin serves it.
//
// Promises: it changes nothing; the object is read at the newest state, everything else at that or later; of every other object only
// what the caller may get is told; without a leader the answer comes all the same and says that it knows nothing of the loops.
//
// Tested through the binary, by the script why, and over storage in memory.
package why
