// Package ownership owns the rule by which a controller takes objects that
// match its selector and lets go of those that no longer do.
//
// It is called by the workload controllers and calls the API types only. Claim
// is pure; the patches name the uid of the object they are for, so that a patch
// meant for one object never changes its successor of the same name.
//
// Tested with tables.
package ownership
