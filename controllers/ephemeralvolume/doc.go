// Package ephemeralvolume makes the PersistentVolumeClaim of each generic ephemeral volume of a pod.
//
// Reads: Pods, PersistentVolumeClaims. Writes: PersistentVolumeClaims (create), events on pods.
// Owns: the claims that it makes, with all that their template says. Pods own them, so that garbage collection deletes
// them with their pod.
//
// It promises: a claim of that name that the pod does not own is never used nor changed, and an event says so; a claim
// that is deleted while its pod lives is made again; nothing is written when nothing has changed.
//
// Tests: a table for the plan, and the loop in synctest bubbles.
package ephemeralvolume
