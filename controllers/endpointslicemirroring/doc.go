// Package endpointslicemirroring writes EndpointSlices for Endpoints that people or programs keep themselves, of
// Services without a selector: nodes route by slices only.
//
// Reads: Endpoints, Services, EndpointSlices. Writes: EndpointSlices (create, update, delete).
// Owns: every EndpointSlice labelled
// endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io.
//
// It promises: slices are as upstream's controller writes them: one for each subset and address family, with 1,000
// addresses of a subset at most, and labels and annotations as on the Endpoints but for those that describe the
// Endpoints themselves; they are deleted when the Service gets a selector, when Endpoints or Service go, and when the
// Endpoints carry the label skip-mirror or serve an election; a slice that becomes superfluous is used for a
// new one of its family; addresses that are left out are told in an event; which ones does not depend on chance,
// as it does upstream; nothing is written when nothing has changed.
//
// The plan is tested with tables, and the loop in bubbles: with generated worlds against a model, and with a crash at
// every write.
package endpointslicemirroring
