// Package volume says what the spec of a volume must be, wherever it stands: in a
// PersistentVolume, and inline in a VolumeAttachment.
//
// The kinds of core and storage call it; it calls claim, podspec, rule and the
// published validation library. It owns no state. Errors carry the field path they are
// handed and speak the words of Kubernetes. It is tested through the golden files of the
// kinds.
package volume
