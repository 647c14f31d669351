// Package resourceclaim makes the ResourceClaims of pods from their templates, and takes pods that need no devices any more
// out of the claims.
//
// Reads: Pods, ResourceClaims, ResourceClaimTemplates. Writes: ResourceClaims (create, delete, status, finalizers), the
// status of pods (server-side apply), events on pods.
// Owns: the claims that it makes; .status.resourceClaimStatuses of pods. It removes from .status.reservedFor pods that are
// gone or have finished, and adds pods that are on a node without having been scheduled. It clears .status.allocation, and
// removes the finalizer resource.kubernetes.io/delete-protection, when it has removed the last user, or when a claim
// without users is being deleted. Allocations, and the reservations of pods that are scheduled, are the scheduler's. So are
// the claims for extended resources, which end here like all others.
//
// It promises: a claim's name follows from its pod and entry, so a claim is not made twice when the answer to a write was
// lost; a reservation is removed only for a pod that the cache knows to be done, or that the API does not have under its uid;
// consumers that are not pods are kept; a claim is deleted only if the pod that owns it does not need it any more;
// nothing is written when nothing has changed.
//
// As upstream's controller, which it follows, it keeps the finalizer on a claim that was deallocated if it could not be removed
// at once: the scheduler may be allocating the claim again. It goes with the next release, or with the claim.
//
// Tests: tables for the plans, the loop in synctest bubbles, and a scenario of the sweep of faults over its writes (package controllers).
package resourceclaim
