// Package bootstraptoken looks after the short tokens by which machines join (kubeadm's
// form): Secrets of type bootstrap.kubernetes.io/token in kube-system.
//
// It is called by package controllers, once for each leadership term, and calls
// client-go and reconcile.
//
// Reads: Secrets of that type, through an informer of its own, and that ConfigMap.
// Writes: Secrets (delete), ConfigMaps (update).
// Owns: the keys jws-kubeconfig-<id> of the ConfigMap kube-public/cluster-info, which an
// administrator makes: who knows a token can tell by its signature that the kubeconfig in
// there is the cluster's.
//
// It promises: a token that has expired is deleted at its time; each token that may sign
// has its signature, and no other has one, a
// minute after cluster-info has changed at the latest.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package bootstraptoken
