package disruption

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Options are those of the deletion; dry run may be asked for in either place.
func Options(eviction *policyv1.Eviction, options *metav1.CreateOptions) (*metav1.DeleteOptions, error) {
	deletion := eviction.DeleteOptions
	if deletion == nil {
		return &metav1.DeleteOptions{DryRun: options.DryRun}, nil
	}
	if ptr.Deref(deletion.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
		return nil, apierrors.NewInvalid(policyv1.SchemeGroupVersion.WithKind("Eviction").GroupKind(), eviction.Name, field.ErrorList{
			field.Invalid(field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true, "can not be set for pod eviction, try after removing the option"),
		})
	}
	deletion = deletion.DeepCopy()
	switch {
	case len(deletion.DryRun) == 0:
		deletion.DryRun = options.DryRun
	case len(options.DryRun) > 0 && !slices.Equal(options.DryRun, deletion.DryRun):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Non-matching dry-run options in request and content: %v and %v", options.DryRun, deletion.DryRun))
	}
	return deletion, nil
}

// Check refuses the eviction of another pod than the preconditions name. In a dry run the deletion alone checks
// them, in other words.
func Check(pod *corev1.Pod, options *metav1.DeleteOptions) error {
	p := options.Preconditions
	if p == nil || len(options.DryRun) > 0 {
		return nil
	}
	var why error
	if uid := ptr.Deref(p.UID, types.UID("")); uid != "" && uid != pod.UID {
		why = fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", uid, pod.UID)
	} else if rv := ptr.Deref(p.ResourceVersion, ""); rv != "" && rv != pod.ResourceVersion {
		why = fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", rv, pod.ResourceVersion)
	}
	if why == nil {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, why)
}

// Mark sets the condition that says why a pod goes, and tells whether that changed the pod.
func Mark(pod *corev1.Pod, now metav1.Time) (changed bool) {
	next := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		LastTransitionTime: now,
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == next.Type })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, next)
		return true
	}
	old := pod.Status.Conditions[i]
	if old.Status == next.Status {
		next.LastTransitionTime = old.LastTransitionTime
	}
	pod.Status.Conditions[i] = next
	return old != next
}
