// Package namespace deletes the contents of deleted namespaces.
//
// Reads: Namespaces, Pods (to react at once), every namespaced kind through
// discovery. Writes: deletes every object of a Terminating namespace, Namespace
// status, the finalizer list through /finalize.
// Owns these fields: Namespace .status.phase and the Namespace* conditions, the
// entry "kubernetes" of .spec.finalizers.
//
// It promises: pods go first and with their grace, everything else only when no pod is left; the namespace goes
// only after a look at every kind found nothing; a kind that cannot be discovered or deleted holds the
// namespace and is named in its conditions; nothing is written when nothing has changed.
//
// Tests run in synctest bubbles over client-go's fakes.
package namespace
