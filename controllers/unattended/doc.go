// Package unattended writes an event on each Service with something that nobody acts on, so that `kubectl describe` says why nothing
// happens.
//
// It reads Services, which package unattended of the module judges. It owns no field of any object: it writes Events only. The list of
// controllers runs it for a term.
//
// It promises: one event an object. Its name follows from the object's uid, so neither another term nor a retry
// writes a second one, and an object older than an event's life had its own. Nothing is written when nothing
// has changed.
//
// Tested in a bubble with reconciletest.
package unattended
