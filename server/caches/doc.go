// Package caches holds what the control loops and admission of one server read.
//
// It owns a SharedInformerFactory whose informers are fed by the store's own decoded objects.
// Package server makes it (New, of the Reads that controllers, scheduler, admission and fairness
// declare), starts it, and hands it to them; they cannot tell it from one over HTTP. A leader
// waits with CatchUp until it holds everything of earlier terms. It calls apiserver/storage,
// and the Reads functions of those that read.
//
// Promises: an informer shares the store's objects, which nobody may change; there is an
// informer of exactly what is declared, so that a kind that nobody reads costs nothing; a server
// that lost the others goes on reading what it has.
//
// Tested over storage in memory, in a bubble.
package caches
