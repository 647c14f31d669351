// Package trustbundle publishes the CA of the API servers as a ClusterTrustBundle of the signer
// kubernetes.io/kube-apiserver-serving, which pods may project into their volumes.
//
// Reads: the ClusterTrustBundles of this signer, through an informer of its own for the term. Writes: ClusterTrustBundles
// (create, update, delete). Owns: all bundles of this signer; upstream's name of a bundle ends with a hash of its content.
//
// It promises: there is one bundle of the signer, with the current CA; what somebody changed or deleted is restored, and
// bundles of a former CA go after the new one is there. Nothing is written when nothing has changed.
//
// Tests: the plan as a table; the whole controller in synctest bubbles over client-go's fake clientset.
package trustbundle
