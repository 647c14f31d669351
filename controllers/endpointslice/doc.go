// Package endpointslice keeps the EndpointSlices of every Service with a selector.
//
// Reads: Services, Pods, Nodes, EndpointSlices. Writes: EndpointSlices.
// Owns: every EndpointSlice labelled
// endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io.
//
// It promises: a pod that becomes ready, not ready, terminating or gone is reflected by the write that this
// event causes, without batching delays; slices of Services without a selector are left alone; nothing is
// written when nothing has changed. Slices of a deleted Service go by garbage collection.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package endpointslice
