// Package devices allocates devices to ResourceClaims with structured parameters (KEP-4381), as the plugin
// DynamicResources of upstream's scheduler does; the search itself is k8s.io/dynamic-resource-allocation/structured.
//
// Devices can also satisfy extended resources of containers (KEP-5004), for which it makes a ResourceClaim of the pod's own, and
// they can have conditions that a pod waits for before it is bound (KEP-5007).
//
// It owns the claims for extended resources, status.extendedResourceClaimStatus of pods, and of claims status.allocation, the
// entry of a pod in status.reservedFor, and the finalizer that keeps an allocated one. The controller resourceclaim removes them
// again. The scheduler calls it: a [World] answers, for a pod and a node, which devices its claims would get, and a [Writer]
// writes that into the claims before the pod is bound.
//
// A device is promised from the moment of the decision until the caches show the claim that has it, so no two pods get it.
// A write whose answer is lost is repeated with the same resourceVersion until its outcome is known; the promise holds that long.
//
// A World is guarded by the scheduler's lock and does no I/O. A Writer is safe for concurrent use. World and Writer are
// tested with tables against client-go's fake, and the whole in worlds of package scheduler.
package devices
