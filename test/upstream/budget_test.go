package upstream

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var budgets = map[string]func(*play){
	"budget-of-all-pods":         counted(&metav1.LabelSelector{}, 2),
	"budget-of-no-pods":          counted(nil, 0),
	"budget-of-pods-without-app": counted(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}}}, 1),
	"budget-selector-is-patched": patchedSelector,
}

func (p *play) budget(selector *metav1.LabelSelector) {
	p.Helper()
	one := intstr.FromInt32(1)
	_, err := p.client.PolicyV1().PodDisruptionBudgets(p.namespace).Create(p.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: selector}}, metav1.CreateOptions{})
	p.must(err)
}

// counted has a pod with labels and one without, and a budget that sees so many of them.
func counted(selector *metav1.LabelSelector, n int32) func(*play) {
	return func(p *play) {
		p.pod("labeled")
		plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: template().Spec}
		_, err := p.client.CoreV1().Pods(p.namespace).Create(p.Context(), plain, metav1.CreateOptions{})
		p.must(err)
		p.budget(selector)
		seen(p, "as many as it selects", func(ctx context.Context) (*policyv1.PodDisruptionBudget, error) {
			p.ready(ctx)
			return p.client.PolicyV1().PodDisruptionBudgets(p.namespace).Get(ctx, "budget", metav1.GetOptions{})
		}, func(b *policyv1.PodDisruptionBudget) bool {
			return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == n && b.Status.ExpectedPods == n
		})
	}
}

// patchedSelector: a strategic patch replaces the selector as a whole, a merge patch merges it, and apply has its own.
func patchedSelector(p *play) {
	body := `{"spec":{"selector":{"matchLabels":{"patchmatch":"true"},"matchExpressions":[{"key":"patchexpression","operator":"In","values":["true"]}]}}}`
	apply := `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget",` + body[1:]
	budgets := p.client.PolicyV1().PodDisruptionBudgets(p.namespace)
	base, patched := map[string]string{"basematch": "true"}, map[string]string{"patchmatch": "true"}
	both := map[string]string{"basematch": "true", "patchmatch": "true"}
	for _, c := range []struct {
		of    types.PatchType
		body  string
		force bool
		want  map[string]string
	}{
		{types.StrategicMergePatchType, body, false, patched},
		{types.MergePatchType, body, false, both},
		{types.ApplyPatchType, apply, true, patched},
	} {
		p.budget(&metav1.LabelSelector{MatchLabels: base, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "baseexpression", Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}}}})
		options := metav1.PatchOptions{FieldManager: "test"}
		if c.force {
			options.Force = &c.force
		}
		got, err := budgets.Patch(p.Context(), "budget", c.of, []byte(c.body), options)
		p.must(err)
		s := got.Spec.Selector
		if !maps.Equal(s.MatchLabels, c.want) || len(s.MatchExpressions) != 1 || s.MatchExpressions[0].Key != "patchexpression" {
			p.Errorf("%s: %+v", c.of, s)
		}
		p.must(budgets.Delete(p.Context(), "budget", metav1.DeleteOptions{}))
	}
}
