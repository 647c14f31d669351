package scenes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// drain evicts pods that nobody replaces: their budget lets one go and holds the next until there is another pod.
func drain(s *scene) {
	for i := range 3 {
		s.barePod(fmt.Sprintf("shop-%d", i))
	}
	two := intstr.FromInt32(2)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &two,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
	}
	if _, err := s.client.PolicyV1().PodDisruptionBudgets(s.namespace).Create(s.Context(), budget, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.seeAllowed(1)
	if err := s.evict("shop-0"); err != nil {
		s.Fatal(err)
	}
	for range 10 {
		if err := s.evict("shop-1"); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			s.Fatalf("a second eviction: %v, want a refusal by the budget", err)
		}
	}
	if n := len(s.pods("shop")); n != 2 {
		s.Fatalf("%d pods are left, want 2", n)
	}
	s.barePod("shop-3")
	s.seeAllowed(1)
	if err := s.evict("shop-1"); err != nil {
		s.Errorf("after there was another pod: %v", err)
	}
}

// barePod has no controller.
func (s *scene) barePod(name string) {
	s.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "shop:v1"}}},
	}
	if _, err := s.client.CoreV1().Pods(s.namespace).Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) seeAllowed(n int32) {
	s.Helper()
	s.see(fmt.Sprintf("%d evictions allowed", n), func(ctx context.Context) (string, bool) {
		b, err := s.client.PolicyV1().PodDisruptionBudgets(s.namespace).Get(ctx, "shop", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", b.Status), b.Status.DisruptionsAllowed == n
	})
}

func (s *scene) evict(name string) error {
	return s.client.CoreV1().Pods(s.namespace).EvictV1(s.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}})
}
