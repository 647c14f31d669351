// Package claim has what a claim to a volume says, wherever it stands: in a
// PersistentVolumeClaim, in a StatefulSet's templates, in a pod's ephemeral volume.
//
// The kinds of core and apps and podspec call it; it calls rule and the published
// validation library. It owns no state. Errors carry the field path they are
// handed and speak the words of Kubernetes. It is tested by its own tables and
// through the golden files of the kinds.
package claim
