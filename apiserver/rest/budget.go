package rest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	pdbhelper "k8s.io/component-helpers/apps/poddisruptionbudget"

	"github.com/setpoint-io/setpoint/apiserver/storage"
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

// budgetsOf returns the budgets that guard a pod. A budget whose selector cannot be
// read guards nothing.
func (e evictionStore) budgetsOf(ctx context.Context, pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	page, err := e.budgets.List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: pod.Namespace, Labels: labels.Everything()}})
	if err != nil {
		return nil, err
	}
	var budgets []*policyv1.PodDisruptionBudget
	for _, item := range page.Items {
		budget := item.Copy().(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			budgets = append(budgets, budget)
		}
	}
	return budgets, nil
}

// disruptsNothing: a pod that is not ready does not count for its application, so it
// may go if enough others are ready or the budget says so.
func disruptsNothing(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) bool {
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

// takeDisruption counts one disruption off the budget and notes for which pod, so
// that the controller does not count the pod as available.
func (e evictionStore) takeDisruption(ctx context.Context, pod *corev1.Pod, name string, dryRun []string) error {
	decide := func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil {
			return nil, apierrors.NewNotFound(podDisruptionBudgets.GroupResource(), name)
		}
		budget := v.Current.Copy().(*policyv1.PodDisruptionBudget)
		if err := refuseDisruption(budget); err != nil {
			return nil, err
		}
		status := &budget.Status
		if status.DisruptionsAllowed--; status.DisruptionsAllowed == 0 {
			pdbhelper.UpdateDisruptionAllowedCondition(budget)
		}
		if status.DisruptedPods == nil {
			status.DisruptedPods = map[string]metav1.Time{}
		}
		status.DisruptedPods[pod.Name] = metav1.Now()
		return &storage.Change{Object: budget}, nil
	}
	if len(dryRun) > 0 {
		_, err := e.budgets.Preview(ctx, pod.Namespace, name, decide)
		return err
	}
	_, err := e.budgets.Write(withActor(ctx), pod.Namespace, name, decide)
	return err
}

func refuseDisruption(budget *policyv1.PodDisruptionBudget) error {
	status := &budget.Status
	forbidden := func(cause error, why string) error {
		err := apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), budget.Name, cause)
		return withBudgetCause(err, fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %s", budget.Name, why))
	}
	switch {
	case status.ObservedGeneration < budget.Generation:
		return budgetBusy(budget.Name)
	case status.DisruptionsAllowed < 0:
		return forbidden(errNegative, errNegative.Error())
	case len(status.DisruptedPods) > disruptedPodsMax:
		return forbidden(errTooManyPending, "too many pending evictions not confirmed by PDB controller")
	case status.DisruptionsAllowed == 0:
		return withBudgetCause(apierrors.NewTooManyRequests(overBudget, 0), exhausted(budget))
	}
	return nil
}

// budgetBusy asks the client to come back: the budget's state is not known yet.
func budgetBusy(name string) error {
	const retrySeconds = 10
	err := apierrors.NewTooManyRequests(overBudget, retrySeconds)
	return withBudgetCause(err, fmt.Sprintf("The disruption budget %s is still being processed by the server.", name))
}

// exhausted tells why a budget has no disruption left. If its controller failed, the
// numbers are not to be trusted.
func exhausted(budget *policyv1.PodDisruptionBudget) string {
	status := &budget.Status
	condition := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	explained := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	switch {
	case explained && condition.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", budget.Name, condition.Message)
	case status.CurrentHealthy <= status.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, status.DesiredHealthy, status.CurrentHealthy)
	case explained:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", budget.Name, condition.Reason, condition.Message)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
}

// withBudgetCause adds the cause by which clients know to try again later.
func withBudgetCause(err *apierrors.StatusError, message string) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message})
	return err
}
