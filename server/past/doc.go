// Package past answers what objects were: `setpoint history`, `setpoint diff`, and which revision a time had.
//
// It owns the limits of the history that a server keeps, as flags, and the answer about one object: its changes, who made each, because of
// what, and which fields it changed. raftstore/history keeps the changes, apiserver/storage decodes them, server/admin serves the answer.
//
// Promises: it changes nothing but what a purge removes; whoever may list objects may ask what became of them; whoever may get the object
// now may ask for its past, of a deleted one too; reads are divided among tenants; of the objects that caused a change only those are
// named that the caller may get. Values of Secrets are not in differences. An answer has at most changesMax changes,
// each with at most fieldsMax fields of valueRunesMax runes.
//
// Tested over storage in memory, and through the binary by the scripts history, diff and purge.
package past
