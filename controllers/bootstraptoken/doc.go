// Package bootstraptoken looks after the short tokens by which machines join (kubeadm's
// form): Secrets of type bootstrap.kubernetes.io/token in kube-system.
//
// Reads: Secrets of that type, through an informer of its own, and that ConfigMap. Writes: Secrets (delete),
// ConfigMaps (create, update). Owns: the keys jws-kubeconfig-<id> of the ConfigMap kube-public/cluster-info: a
// holder of a token can verify by its signature that the kubeconfig in there is the cluster's. The kubeconfig,
// which names the server that made it, is the administrator's once it is there.
//
// It promises: a token that has expired is deleted at its time; a minute after
// cluster-info has changed or gone, at the latest, it is there, each token that may sign
// has its signature, and no other has one.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package bootstraptoken
