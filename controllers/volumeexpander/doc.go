// Package volumeexpander tells that a bound claim which asks for more room than it has waits for an external resizer.
//
// Reads: PersistentVolumeClaims, PersistentVolumes. Writes: events on claims, nothing else: no volume is expanded by what
// is built in, as in upstream, where all expanding plugins have become CSI drivers. A driver's resizer owns the conditions
// and the capacity in a claim's status.
//
// It promises: one event for each growth of a claim, and for each that a new term finds unfinished.
//
// Tests: a table, and the loop in a synctest bubble.
package volumeexpander
