// Package kubernetesservice keeps the Service default/kubernetes, by which pods find the
// API, with its Endpoints and EndpointSlices.
//
// Package server/term runs it, once for each leadership term, and tells it the servers. It calls client-go and
// reconcile.
//
// Reads: Services, Endpoints, EndpointSlices; the servers that it is told of. Writes:
// the Service (create), its Endpoints and EndpointSlices (create, update, delete).
// Owns: the addresses and ports of those, and the annotation by which the slice tells which ports of machines the servers have
// (internal/reserved).
//
// It promises: servers that pods can reach are listed within seconds after the membership changes; what
// somebody deleted comes back; servers with different ports, as on one machine, get one slice and one subset
// for each port; an address of loopback is never listed, since it would lead a pod to itself; nothing is
// written when nothing has changed.
//
// Tests: tables, and the loop in a bubble over client-go's fake clientset.
package kubernetesservice
