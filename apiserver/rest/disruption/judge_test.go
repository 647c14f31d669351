package disruption

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expected is upstream's verdict on one eviction, as its documentation and its code have it: "free", "costs", "several", or
// the code, the retry seconds and the cause of the refusal.
func expected(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return "free"
	}
	var mine []*policyv1.PodDisruptionBudget
	for _, b := range budgets {
		if b.Spec.Selector != nil && (len(b.Spec.Selector.MatchLabels) == 0 || b.Spec.Selector.MatchLabels["app"] == pod.Labels["app"]) {
			mine = append(mine, b)
		}
	}
	if len(mine) != 1 {
		return map[bool]string{true: "free", false: "several"}[len(mine) == 0]
	}
	s, name := mine[0].Status, "The disruption budget "+mine[0].Name
	ready := len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
	always := mine[0].Spec.UnhealthyPodEvictionPolicy != nil && *mine[0].Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	switch {
	case !ready && (always || s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy):
		return "free"
	case s.ObservedGeneration < mine[0].Generation:
		return "429 10 " + name + " is still being processed by the server."
	case s.DisruptionsAllowed < 0:
		return "403 0 " + name + " does not allow evicting pods currently: pdb disruptions allowed is negative"
	case len(s.DisruptedPods) > 2000:
		return "403 0 " + name + " does not allow evicting pods currently: too many pending evictions not confirmed by PDB controller"
	case s.DisruptionsAllowed > 0:
		return "costs"
	case len(s.Conditions) > 0 && s.Conditions[0].Reason == "SyncFailed":
		return "429 0 " + name + " does not allow evicting pods currently because it failed sync: m"
	case s.CurrentHealthy <= s.DesiredHealthy:
		return fmt.Sprintf("429 0 %s needs %d healthy pods and has %d currently", name, s.DesiredHealthy, s.CurrentHealthy)
	case len(s.Conditions) > 0:
		return "429 0 " + name + " does not allow evicting pods currently (InsufficientPods): m"
	}
	return "429 0 " + name + " does not allow evicting pods currently"
}

// shown is judge's verdict in expected's words.
func shown(t *testing.T, pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	t.Helper()
	if unguarded(pod) {
		return "free"
	}
	after, costs, err := judge(pod, budgets, time.Now())
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrSeveral):
		return "several"
	case errors.As(err, &status):
		s := status.Status()
		if n := len(s.Details.Causes); n != 1 || s.Details.Causes[0].Type != policyv1.DisruptionBudgetCause {
			t.Fatalf("%d causes: %v", n, s.Details.Causes)
		}
		return fmt.Sprintf("%d %d %s", s.Code, s.Details.RetryAfterSeconds, s.Details.Causes[0].Message)
	case err != nil:
		t.Fatal(err)
	case costs:
		checkPaid(t, pod, budgets, after)
		return "costs"
	}
	return "free"
}

// checkPaid compares the budget before and after a disruption.
func checkPaid(t *testing.T, pod *corev1.Pod, before []*policyv1.PodDisruptionBudget, after *policyv1.PodDisruptionBudget) {
	t.Helper()
	for _, b := range before {
		if b.Name != after.Name {
			continue
		}
		_, noted := after.Status.DisruptedPods[pod.Name]
		if !noted || after.Status.DisruptionsAllowed != b.Status.DisruptionsAllowed-1 || len(b.Status.DisruptedPods) == len(after.Status.DisruptedPods) {
			t.Fatalf("before %+v\nafter %+v", b.Status, after.Status)
		}
		if after.Status.DisruptionsAllowed == 0 && (len(after.Status.Conditions) != 1 || after.Status.Conditions[0].Status != metav1.ConditionFalse) {
			t.Fatalf("conditions at the end of the budget: %+v", after.Status.Conditions)
		}
	}
}

// TestVerdicts compares the verdicts on generated pods and budgets.
func TestVerdicts(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		pod := randomPod(r)
		var budgets []*policyv1.PodDisruptionBudget
		for i := range []int{0, 1, 1, 1, 1, 2}[r.IntN(6)] {
			budgets = append(budgets, randomBudget(r, fmt.Sprintf("b%d", i)))
		}
		want := expected(pod, budgets)
		if got := shown(t, pod, budgets); got != want {
			t.Fatalf("seed %d: %s, want %s\npod %+v\nbudgets %+v", seed, got, want, pod, budgets)
		}
		seen[want[:min(len(want), 60)]]++
	}
	if len(seen) < 11 {
		t.Errorf("only %d kinds of verdicts: %v", len(seen), seen)
	}
}

func randomPod(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "web"}}}
	pod.Status.Phase = []corev1.PodPhase{"Pending", "Succeeded", "Failed", "Running", "Running", "Running", "Running", "Running"}[r.IntN(8)]
	if r.IntN(8) == 0 {
		pod.DeletionTimestamp = &metav1.Time{}
	}
	if r.IntN(5) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: []corev1.ConditionStatus{"True", "True", "False", "Unknown"}[r.IntN(4)]}}
	}
	return pod
}

func randomBudget(r *rand.Rand, name string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	b.Spec.Selector = []*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"app": "db"}}, {MatchLabels: map[string]string{"app": "web"}}, {MatchLabels: map[string]string{"app": "web"}},
	}[r.IntN(5)]
	policies := []*policyv1.UnhealthyPodEvictionPolicyType{nil, new(policyv1.IfHealthyBudget), new(policyv1.AlwaysAllow)}
	b.Spec.UnhealthyPodEvictionPolicy = policies[r.IntN(3)]
	b.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: []int64{1, 2, 2, 2, 2}[r.IntN(5)], CurrentHealthy: int32(r.IntN(4)), DesiredHealthy: int32(r.IntN(4)),
		DisruptionsAllowed: []int32{-1, 0, 0, 0, 0, 1, 2}[r.IntN(7)],
	}
	switch r.IntN(40) {
	case 0:
		b.Status.DisruptedPods = many(2000 + r.IntN(2))
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		b.Status.Conditions = []metav1.Condition{{Type: "DisruptionAllowed", Status: "False", Reason: "SyncFailed", Message: "m"}}
	case 11, 12, 13, 14, 15, 16, 17, 18, 19, 20:
		b.Status.Conditions = []metav1.Condition{{Type: "DisruptionAllowed", Status: "False", Reason: "InsufficientPods", Message: "m"}}
	}
	return b
}

// many are evictions that no controller has seen yet.
func many(n int) map[string]metav1.Time {
	pods := map[string]metav1.Time{}
	for i := range n {
		pods[fmt.Sprint(i)] = metav1.Time{}
	}
	return pods
}

func TestMark(t *testing.T) {
	now, before := metav1.Unix(100, 0), metav1.Unix(50, 0)
	want := corev1.PodCondition{Type: "DisruptionTarget", Status: "True", Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", LastTransitionTime: now}
	since := want
	since.LastTransitionTime = before
	other := corev1.PodCondition{Type: "DisruptionTarget", Status: "True", Reason: "PreemptionByScheduler", LastTransitionTime: before}
	cleared := corev1.PodCondition{Type: "DisruptionTarget", Status: "False", LastTransitionTime: before}
	for name, c := range map[string]struct {
		has     []corev1.PodCondition
		want    corev1.PodCondition
		changed bool
	}{
		"new":             {nil, want, true},
		"false before":    {[]corev1.PodCondition{cleared}, want, true},
		"another reason":  {[]corev1.PodCondition{other}, since, true},
		"said so already": {[]corev1.PodCondition{since}, since, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: c.has}}
		changed := Mark(pod, now)
		if diff := cmp.Diff([]corev1.PodCondition{c.want}, pod.Status.Conditions); diff != "" || changed != c.changed {
			t.Errorf("%s: changed %v %s", name, changed, diff)
		}
	}
}
