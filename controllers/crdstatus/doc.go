// Package crdstatus judges CustomResourceDefinitions: which names are theirs, whether their
// schemas are structural, when they are established; and it deletes the instances of
// definitions that are being deleted.
//
// Reads: CustomResourceDefinitions; custom resources, as metadata. Writes:
// CustomResourceDefinitions (status; the finalizer), custom resources (delete).
// Owns: .status.acceptedNames; the conditions NamesAccepted, Established,
// NonStructuralSchema, KubernetesAPIApprovalPolicyConformant, Terminating; the
// finalizer customresourcecleanup.apiextensions.k8s.io.
//
// It promises: no name of a group belongs to two definitions, since one worker decides and knows what it
// decided before its cache does; a name that becomes free goes to a definition that waits for it; a definition
// is deleted only after its last instance; nothing is written when nothing has changed. Names and Established
// are written at once: an API server serves a definition from the same record that shows it established.
//
// The plan is pure and tested by tables, the loop in a bubble over the published fake.
package crdstatus
