// Package devicetainteviction deletes pods that use devices with a taint of the effect NoExecute which their claims do not
// tolerate, or not for longer, and tells in the status of each DeviceTaintRule how far that is.
//
// Reads: Pods, ResourceClaims, ResourceSlices, DeviceTaintRules. Writes: Pods (DisruptionTarget, delete), the status of
// DeviceTaintRules (server-side apply), events on pods.
// Owns: the condition EvictionInProgress of DeviceTaintRules.
//
// A taint stands in the ResourceSlice of the device's driver or in a DeviceTaintRule that selects the device. It counts from its
// timeAdded, and the shortest toleration of the claim's allocation for it. Of a pool only the slices of the newest generation
// count. A pod uses the claims of its entries, and the claim that was made for its extended resources, as far as they are reserved
// for it, as upstream.
//
// It promises: a pod is deleted only after the API was asked whether it is still the same and still there; nothing is evicted
// before its time; a rule's status is written at most every ten seconds unless its spec changes; nothing is written when
// nothing has changed.
//
// How many pods were evicted for a rule is counted in memory, from the beginning of the term, as the condition says.
// Unlike upstream's, it leaves pods alone that have finished but whose claim is not released yet.
//
// Tests: tables for the plans, the loop in synctest bubbles, and a scenario of the sweep of faults over its writes (package
// controllers).
package devicetainteviction
