// Package managedfields keeps metadata.managedFields of plain writes: who manages
// which fields, exactly as upstream's field manager computes it, at a fraction of
// the cost.
//
// Which fields an object has follows from its shape: which of its parts are
// present, the keys of its maps and of the lists that are merged by key. Values do
// not matter. So upstream answers once for each shape of a kind, and Owners
// remembers the answer. An update that leaves the shape alone, of an object
// that one manager owns whole, changes no more than the time of its entry.
// Everything else (several managers, apply, managedFields set by the client,
// values whose fields depend on more than their shape) is upstream's.
//
// apiserver/rest calls it, once for each create and update that it serves itself.
// It imports apiserver/resource only.
//
// Promises: the same managedFields as upstream's, but for the fraction of a second
// at which both look at the clock; what it remembers is bounded (ShapesBytesMax).
// Owners are safe for concurrent use.
//
// It is tested against upstream's field manager: random objects of every kind,
// and variants of them, must get the same entries from both, created and updated.
package managedfields
