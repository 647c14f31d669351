package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

const (
	// deletionTimeout is how long a pod whose eviction was granted may take until its deletion is seen. Then the
	// eviction came to nothing.
	deletionTimeout = 2 * time.Minute
	// failedPause is the pause after which what could not be counted is looked at again: that of whose scale is read from
	// the API no event tells.
	failedPause = time.Minute
)

// observed is what a plan goes by.
type observed struct {
	pods       []*corev1.Pod // that the budget selects
	podsFailed error         // why they are not known
	// scale is what their controllers want, if the budget needs to know, and scaleFailed why that is not known.
	scale       scale
	scaleFailed error
}

// event is one about the budget or, if there is one, about the pod.
type event struct {
	pod                *corev1.Pod
	kind, reason, text string
}

// todo is what a pass has to do: the status, and the events if it changes.
type todo struct {
	status policyv1.PodDisruptionBudgetStatus
	events []event
	again  time.Duration
}

// needsScale tells whether a budget goes by how many pods there should be, and not only by how many there are.
func needsScale(budget *policyv1.PodDisruptionBudget) bool {
	least := budget.Spec.MinAvailable
	return budget.Spec.MaxUnavailable != nil || least != nil && least.Type == intstr.String
}

// sameCount tells whether a pod counts as before, in the same budgets.
func sameCount(before, after *corev1.Pod) bool {
	return before.UID == after.UID && podstate.Ready(before) == podstate.Ready(after) &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		apiequality.Semantic.DeepEqual(before.Labels, after.Labels) &&
		apiequality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after))
}

// plan counts the pods of a budget.
func plan(budget *policyv1.PodDisruptionBudget, seen observed, now time.Time) todo {
	if err := seen.podsFailed; err != nil {
		return failed(budget, event{nil, corev1.EventTypeWarning, "NoPods", fmt.Sprintf("Failed to get pods: %v", err)}, err, now)
	}
	expected, desired, err := expectation(budget, seen)
	if err != nil {
		text := fmt.Sprintf("Failed to calculate the number of expected pods: %v", err)
		return failed(budget, event{nil, corev1.EventTypeWarning, "CalculateExpectedPodCountFailed", text}, err, now)
	}
	t := todo{events: news(budget, seen)}
	pending := t.pending(budget, seen.pods, now)
	healthy := int32(0)
	for _, pod := range seen.pods {
		if _, goes := pending[pod.Name]; pod.DeletionTimestamp == nil && !goes && podstate.Ready(pod) {
			healthy++
		}
	}
	t.status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptedPods: pending,
		CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected,
		Conditions: budget.DeepCopy().Status.Conditions,
	}
	if expected > 0 { // without, the first pods of a budget could be evicted before they are counted
		t.status.DisruptionsAllowed = max(0, healthy-desired)
	}
	condition := metav1.Condition{Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason}
	if t.status.DisruptionsAllowed > 0 {
		condition = metav1.Condition{Status: metav1.ConditionTrue, Reason: policyv1.SufficientPodsReason}
	}
	setCondition(&t.status, condition, now)
	return t
}

// expectation is how many pods there should be, and how many of them healthy.
func expectation(budget *policyv1.PodDisruptionBudget, seen observed) (expected, desired int32, err error) {
	least, most := budget.Spec.MinAvailable, budget.Spec.MaxUnavailable
	if needsScale(budget) {
		if seen.scaleFailed != nil {
			return 0, 0, seen.scaleFailed
		}
		expected = seen.scale.pods
	}
	switch {
	case most != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(most, int(expected), true)
		return expected, int32(max(0, int64(expected)-int64(n))), err
	case least == nil:
		return 0, 0, nil
	case least.Type == intstr.Int:
		return int32(len(seen.pods)), least.IntVal, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(least, int(expected), true)
	return expected, int32(n), err
}

// news are the events about what was found.
func news(budget *policyv1.PodDisruptionBudget, seen observed) []event {
	var events []event
	if len(seen.pods) == 0 {
		events = append(events, event{nil, corev1.EventTypeNormal, "NoPods", "No matching pods found"})
	}
	if len(seen.scale.unmanaged) > 0 {
		events = append(events, event{nil, corev1.EventTypeWarning, "UnmanagedPods", fmt.Sprintf("Pods selected by this PodDisruptionBudget (selector: %v) were found "+
			"to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "+
			"To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.", budget.Spec.Selector)})
	}
	return events
}

// pending are the pods whose eviction was granted and whose deletion is not seen yet. Others leave the list.
func (t *todo) pending(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod, now time.Time) map[string]metav1.Time {
	left := map[string]metav1.Time{}
	for _, pod := range pods {
		granted, noted := budget.Status.DisruptedPods[pod.Name]
		if !noted || pod.DeletionTimestamp != nil {
			continue
		}
		wait := granted.Add(deletionTimeout).Sub(now)
		if wait <= 0 {
			t.events = append(t.events, event{pod, corev1.EventTypeWarning, "NotDeleted",
				fmt.Sprintf("Pod was expected by PDB %s/%s to be deleted but it wasn't", budget.Namespace, budget.Name)})
			continue
		}
		left[pod.Name] = granted
		if t.again == 0 || wait < t.again {
			t.again = wait
		}
	}
	return left
}

// failed allows nothing, and says why.
func failed(budget *policyv1.PodDisruptionBudget, e event, err error, now time.Time) todo {
	t := todo{status: *budget.Status.DeepCopy(), events: []event{e}, again: failedPause}
	t.status.DisruptionsAllowed = 0
	setCondition(&t.status, metav1.Condition{Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: err.Error()}, now)
	return t
}

func setCondition(status *policyv1.PodDisruptionBudgetStatus, condition metav1.Condition, now time.Time) {
	condition.Type, condition.ObservedGeneration = policyv1.DisruptionAllowedCondition, status.ObservedGeneration
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
}
