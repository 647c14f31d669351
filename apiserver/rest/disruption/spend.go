package disruption

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// ErrSeveral says that more than one budget guards the pod: it is not defined which one would pay.
var ErrSeveral = errors.New("several budgets guard the pod")

// SeveralMessage is the message of the answer to an eviction that failed with ErrSeveral.
const SeveralMessage = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."

// Budgets is where budgets are.
var Budgets = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

// Spend makes the eviction of a pod cost its budget what it has to, in the view's transaction, or returns why the
// pod may not be evicted. The eviction then takes effect only if the budget is still as it was judged.
func Spend(v *storage.View, pod *corev1.Pod) error {
	if unguarded(pod) {
		return nil
	}
	var budgets []*policyv1.PodDisruptionBudget
	for obj, err := range v.Snapshot(Budgets).All(pod.Namespace) {
		if err != nil {
			return err
		}
		budgets = append(budgets, obj.(*policyv1.PodDisruptionBudget))
	}
	budget, costs, err := judge(pod, budgets, v.Now())
	if err != nil || budget == nil {
		return err
	}
	if costs {
		return v.Replace(Budgets, budget)
	}
	_, err = v.Require(Budgets, budget.Namespace, budget.Name)
	return err
}

// judge finds the budget that allows the eviction of a pod: as it is after a disruption if the eviction costs it one, as it
// was if not, and nil if no budget guards the pod.
func judge(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget, now time.Time) (
	budget *policyv1.PodDisruptionBudget, costs bool, err error) {
	for _, b := range budgets {
		if !guards(b, pod) {
			continue
		}
		if budget != nil {
			return nil, false, ErrSeveral
		}
		budget = b
	}
	if budget == nil || free(pod, budget) {
		return budget, false, nil
	}
	budget = budget.DeepCopy() // it is shared
	return budget, true, take(budget, pod.Name, now)
}

// unguarded tells that a pod serves nobody yet or any more: no budget is asked.
func unguarded(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	}
	return pod.DeletionTimestamp != nil
}

// Refusal says which of the budgets of its namespace guard a pod, and why its eviction would be refused now; empty: it
// would not be. Nothing is spent.
func Refusal(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) (guarding []*policyv1.PodDisruptionBudget, why string) {
	for _, b := range budgets {
		if guards(b, pod) {
			guarding = append(guarding, b)
		}
	}
	if unguarded(pod) {
		return guarding, ""
	}
	_, _, err := judge(pod, guarding, time.Time{}) // nothing that it says is kept
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return guarding, ""
	case errors.Is(err, ErrSeveral):
		return guarding, SeveralMessage
	case errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0:
		return guarding, status.Status().Details.Causes[0].Message
	}
	return guarding, err.Error()
}
