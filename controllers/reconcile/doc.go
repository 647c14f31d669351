// Package reconcile owns what a controller is built from (Env), what it declares
// (Controller, with the kinds that it reads) and the loop that every controller
// shares (Run): informer events become keys, keys wait in a queue that never
// holds one twice, workers hand each key to the controller's Func, failures come
// back later.
//
// The folders below it hold what several controllers do alike: adopt,
// conditions, expect, podstate, revisions, and reconciletest, the world of their
// tests.
//
// It promises: a controller reads from caches what it declares and
// nothing else; one key is never handled by two workers at once; Func sees only
// a key, so that lost or merged events do not matter; Func first runs after the
// caches hold everything that they held when Run began; Run returns only after
// its last worker has. A failed key is tried again after RetryDelayMin, doubled
// up to RetryDelayMax, and from RetryDelayMin again once its object changes
// generation; a terminal error is logged and dropped until the next
// event. A panic inside Func is an error of that key, because one bad object
// must not stop the controllers of every replica in turn.
//
// Tests run in synctest bubbles over hand-fed informers.
package reconcile
