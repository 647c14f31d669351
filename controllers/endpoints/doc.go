// Package endpoints keeps the v1 Endpoints of every Service with a selector, for clients that do not read
// EndpointSlices yet.
//
// Reads: Services, Pods, Endpoints. Writes: Endpoints (create, update, delete).
// Owns: subsets, labels and the annotations endpoints.kubernetes.io/last-change-trigger-time and
// endpoints.kubernetes.io/over-capacity of the Endpoints of a Service with a selector.
//
// It promises: Endpoints are as upstream's controller writes them, to the order of addresses; a pod's change is
// written without a delay, and changes that come during a write are written together; Endpoints go with their
// Service, also when that was deleted while nobody led; those of Services without a selector are left alone, and
// those of default/kubernetes always; Endpoints that somebody else edits or deletes are put right at once, where
// upstream waits for the next change of a pod; nothing is written when nothing has changed. While a Service has more
// than 1,000 addresses, a change beyond those that are kept is not written either.
//
// The plan is tested with tables, and the loop in bubbles: with generated worlds against a model, and with a crash at
// every write.
package endpoints
