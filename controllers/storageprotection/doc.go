// Package storageprotection keeps storage that is in use from being deleted: claims
// that a pod on a node uses, volumes that are bound, attribute classes that a claim or
// volume has. It says of each bound claim whether a pod uses it.
//
// Reads: PersistentVolumeClaims, PersistentVolumes, VolumeAttributesClasses, Pods.
// Writes: the first three (update), the status of claims.
// Owns: the finalizers kubernetes.io/pvc-protection, kubernetes.io/pv-protection and
// kubernetes.io/vac-protection. Admission puts them on what is created; here they are
// put on what is older, and taken off what is being deleted and no longer used. The
// condition Unused of claims.
//
// It promises: before a claim's finalizer is removed or it is called unused, the pods of its namespace are read from the API, since
// the cache may lack the newest; nothing is written when nothing has changed.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package storageprotection
