package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestListByLabel: a list by the index is the list without it, for selectors of all operators.
func TestListByLabel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	anyLabels := func() map[string]string {
		some := map[string]string{}
		for range random.IntN(3) {
			some[string(rune('a'+random.IntN(3)))] = fmt.Sprint(random.IntN(3))
		}
		return some
	}
	var pods []*corev1.Pod
	for i := range 200 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("n", i%2), Name: fmt.Sprint("p", i), Labels: anyLabels(),
		}})
	}
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
	}
	anySelector := func() labels.Selector {
		s := &metav1.LabelSelector{MatchLabels: anyLabels()}
		for range random.IntN(3) {
			r := metav1.LabelSelectorRequirement{Key: string(rune('a' + random.IntN(3))), Operator: operators[random.IntN(len(operators))]}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = []string{"0", "1"}[random.IntN(2):]
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	synctest.Test(t, func(t *testing.T) {
		look := func(context.Context, Key) (time.Duration, error) { return 0, nil }
		err := start(t, Controller{Name: "c", Reads: []Read{LabelledPods}, Run: func(ctx context.Context, env *Env) error {
			fast, slow := LabelledPods.From(env), Pods.From(env)
			if err := Run(ctx, Config{Name: "c", Reconcile: look, Sources: []Source{Self(fast)}, Env: env}); err != nil {
				return err
			}
			chosen := 0
			for i := range 1000 {
				namespace, selector := []string{"n0", "n1", "", "none"}[i%4], anySelector()
				if i%100 == 0 {
					selector = labels.Nothing()
				}
				got, want := namesOf(t, fast, namespace, selector), namesOf(t, slow, namespace, selector)
				if !slices.Equal(got, want) {
					t.Fatalf("%s %q: %v, want %v", namespace, selector, got, want)
				}
				chosen += len(want)
			}
			if chosen < 1000 {
				t.Errorf("only %d pods were chosen: this tests nothing", chosen)
			}
			return nil
		}}, pods...)
		if err != nil {
			t.Error(err)
		}
	})
}

func namesOf(t *testing.T, pods Cache[*corev1.Pod], namespace string, selector labels.Selector) (names []string) {
	t.Helper()
	found, err := pods.List(namespace, selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	slices.Sort(names)
	return names
}
