package disruption

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	pdbhelper "k8s.io/component-helpers/apps/poddisruptionbudget"
)

const (
	// disruptedPodsMax is how many evictions may wait until the controller has seen them.
	disruptedPodsMax = 2000
	overBudget       = "Cannot evict pod as it would violate the pod's disruption budget."
)

// errNegative and errTooManyPending are why a damaged budget refuses.
var (
	errNegative       = errors.New("pdb disruptions allowed is negative")
	errTooManyPending = errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
)

// guards tells whether the budget, of the pod's namespace, is for the pod. One whose
// selector cannot be read guards nothing.
func guards(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// free tells whether the eviction of the pod costs the budget nothing: a pod that is not ready does not count for its application, so it
// may go if enough others are ready or the budget says so.
func free(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) bool {
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		return false
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
}

// take counts one disruption off the budget and notes for which pod, so that the
// controller does not count the pod as available. It returns why there is none to take.
func take(budget *policyv1.PodDisruptionBudget, pod string, now time.Time) error {
	if err := refuse(budget); err != nil {
		return err
	}
	status := &budget.Status
	if status.DisruptionsAllowed--; status.DisruptionsAllowed == 0 {
		pdbhelper.UpdateDisruptionAllowedCondition(budget)
	}
	if status.DisruptedPods == nil {
		status.DisruptedPods = map[string]metav1.Time{}
	}
	status.DisruptedPods[pod] = metav1.NewTime(now)
	return nil
}

func refuse(budget *policyv1.PodDisruptionBudget) error {
	status := &budget.Status
	forbidden := func(cause error, why string) error {
		err := apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), budget.Name, cause)
		return withCause(err, fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %s", budget.Name, why))
	}
	switch {
	case status.ObservedGeneration < budget.Generation:
		return busy(budget.Name)
	case status.DisruptionsAllowed < 0:
		return forbidden(errNegative, errNegative.Error())
	case len(status.DisruptedPods) > disruptedPodsMax:
		return forbidden(errTooManyPending, "too many pending evictions not confirmed by PDB controller")
	case status.DisruptionsAllowed == 0:
		return withCause(apierrors.NewTooManyRequests(overBudget, 0), exhausted(budget))
	}
	return nil
}

// busy is the 429 answer while the budget's status is not known yet; the client tries again.
func busy(name string) error {
	const retrySeconds = 10
	err := apierrors.NewTooManyRequests(overBudget, retrySeconds)
	return withCause(err, fmt.Sprintf("The disruption budget %s is still being processed by the server.", name))
}

// exhausted tells why a budget has no disruption left. If its controller failed, the
// numbers are not to be trusted.
func exhausted(budget *policyv1.PodDisruptionBudget) string {
	status := &budget.Status
	condition := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	explained := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	switch {
	case explained && condition.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf(
			"The disruption budget %s does not allow evicting pods currently because it failed sync: %s",
			budget.Name,
			condition.Message,
		)
	case status.CurrentHealthy <= status.DesiredHealthy:
		return fmt.Sprintf(
			"The disruption budget %s needs %d healthy pods and has %d currently",
			budget.Name,
			status.DesiredHealthy,
			status.CurrentHealthy,
		)
	case explained:
		return fmt.Sprintf(
			"The disruption budget %s does not allow evicting pods currently (%s): %s",
			budget.Name,
			condition.Reason,
			condition.Message,
		)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
}

// withCause adds the cause by which clients know to try again later.
func withCause(err *apierrors.StatusError, message string) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.Causes = append(
		err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message},
	)
	return err
}
