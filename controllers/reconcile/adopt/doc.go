// Package adopt owns the rule by which a controller takes objects that
// match its selector and lets go of those that no longer do.
//
// Claim is pure, CarryOut acts on it; patches name the uid of their object, so
// that one meant for an object never changes its successor of the same name.
//
// Tested with tables.
package adopt
