package storageprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

var claimConditions = conditions.Of(
	func(c *corev1.PersistentVolumeClaimCondition) (corev1.PersistentVolumeClaimConditionType, corev1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	})

// noteUse keeps the condition Unused of a bound claim, and reports whether it was written. Who binds claims writes their
// status until then.
func (c *controller) noteUse(ctx context.Context, claim *corev1.PersistentVolumeClaim) (written bool, err error) {
	if claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		return false, nil
	}
	used, err := c.cachedUse(claim, refersTo)
	if err != nil {
		return false, err
	}
	if !used && !claimConditions.Is(claim.Status.Conditions, corev1.PersistentVolumeClaimUnused, corev1.ConditionTrue) {
		if used, err = c.claimUsed(ctx, claim, refersTo); err != nil {
			return false, err
		}
	}
	is := unused(used)
	if claimConditions.Is(claim.Status.Conditions, is.Type, is.Status) {
		return false, nil
	}
	next := claim.DeepCopy()
	next.Status.Conditions = claimConditions.Set(next.Status.Conditions, is, c.env.Now())
	_, err = c.env.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		UpdateStatus(reconcile.WithCause(ctx, claim), next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return true, err
}

func unused(used bool) corev1.PersistentVolumeClaimCondition {
	if used {
		return corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionFalse,
			Reason: "PodUsingPVC", Message: "A pod is currently referencing this PVC",
		}
	}
	return corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue,
		Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC",
	}
}

// refersTo reports whether a pod that has not ended has the claim among its volumes. Unlike uses, it counts a pod that waits for
// a node.
func refersTo(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return !ended(pod) && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName == claim.Name
		}
		return v.Ephemeral != nil && ephemeral.VolumeClaimName(pod, &v) == claim.Name && ephemeral.VolumeIsForPod(pod, claim) == nil
	})
}

// ended reports whether no container of a pod runs any more, nor will.
func ended(pod *corev1.Pod) bool {
	running := func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil && s.State.Waiting == nil }
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
	return podstate.Finished(pod) || pod.DeletionTimestamp != nil && !slices.ContainsFunc(statuses, running)
}
