// Package monitors gives the garbage collector the owner references of all objects, for one
// term of leadership.
//
// It owns an informer for each kind that the server's caches lack: built-in kinds, custom
// resources, and what other API servers keep. It is made when a term begins, and server/term
// hands All to the controllers. It calls apiserver/storage, crd and aggregation, and takes
// what server/caches has.
//
// Promises: only metadata is kept; kinds come and go with their definitions; a server that
// does not answer keeps the collector from nothing else; all ends with the term.
//
// Tested over storage in memory, in a bubble.
package monitors
