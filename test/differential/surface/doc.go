// Package surface compares lists that make up what a client or an administrator meets, with those that upstream keeps in its source:
// feature gates, admission plugins, flags, roles, what discovery offers, and the columns of tables. A new version of upstream fails here until
// somebody has decided what becomes of what it adds.
//
// Upstream's files are read, not linked, so the tests take a moment. They say which row is missing, and where it belongs.
package surface
