// Package propagation says what becomes of the dependents of an object that is deleted: they are deleted too, before it, or left alone.
//
// It owns the two finalizers by which the garbage collector learns that. apiserver/rest calls it when it decides a deletion; it calls
// nothing of ours. Upstream's rule: k8s.io/apiserver/pkg/registry/generic/registry, deletionFinalizersForGarbageCollection. Tested by
// deletions in apiserver.
package propagation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is what a kind says of its dependents.
type Kind struct {
	// None: it has no dependents.
	None bool
	// OrphanByDefault leaves them alone where the client asks for nothing.
	OrphanByDefault bool
}

// Finalizers are those of an object that had some, once it is deleted with these options.
func (k Kind) Finalizers(had []string, options *metav1.DeleteOptions) []string {
	var finalizers []string
	for _, f := range had {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			finalizers = append(finalizers, f)
		}
	}
	switch k.policy(had, options) {
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers
}

func (k Kind) policy(had []string, options *metav1.DeleteOptions) metav1.DeletionPropagation {
	switch {
	case k.None:
		return metav1.DeletePropagationBackground
	case options.PropagationPolicy != nil:
		return *options.PropagationPolicy
	case options.OrphanDependents != nil && *options.OrphanDependents:
		return metav1.DeletePropagationOrphan
	case options.OrphanDependents != nil:
		return metav1.DeletePropagationBackground
	case slices.Contains(had, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(had, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	case k.OrphanByDefault:
		return metav1.DeletePropagationOrphan
	default:
		return metav1.DeletePropagationBackground
	}
}
