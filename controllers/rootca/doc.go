// Package rootca owns the ConfigMap kube-root-ca.crt of every namespace, by
// which pods know the API servers' certificates.
//
// Reads: Namespaces, the ConfigMaps of that name. Writes: ConfigMaps (create, update).
// Owns: .data of those ConfigMaps.
//
// It promises: a namespace that is not being deleted has the bundle as soon as the namespace's event is
// handled, again after someone changed it; nothing is written when nothing has changed.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package rootca
