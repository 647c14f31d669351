package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestEvictions: the mildest comes first, and a pod that preempts nobody has none.
func TestEvictions(t *testing.T) {
	guarded, two := bound(testPod("guarded", "2", ""), "node-2"), prioritized(bound(testPod("important", "1", ""), "node-1"), 1)
	guarded.Labels = map[string]string{"app": "guarded"}
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	add := func(o any, err error) {
		if err != nil {
			t.Fatal(err, o)
		}
	}
	core := factory.Core().V1()
	for _, node := range []*corev1.Node{testNode("node-1", "z", "2", "8Gi"), testNode("node-2", "z", "2", "8Gi"), testNode("node-3", "z", "1", "8Gi")} {
		add(node, core.Nodes().Informer().GetStore().Add(node))
	}
	for _, pod := range []*corev1.Pod{guarded, two, bound(testPod("plain", "1", ""), "node-1")} {
		add(pod, core.Pods().Informer().GetStore().Add(pod))
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: guarded.Namespace, Name: "guard"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels.Set(guarded.Labels)}
	add(budget, factory.Policy().V1().PodDisruptionBudgets().Informer().GetStore().Add(budget))

	j := NewJudge(Config{Informers: factory})
	for _, tc := range []struct {
		policy corev1.PreemptionPolicy
		want   string
	}{
		{corev1.PreemptLowerPriority, "node-1: important plain, 0; node-2: guarded, 1; "},
		{corev1.PreemptNever, ""},
	} {
		pod := prioritized(testPod("in", "2", ""), 10)
		pod.Spec.PreemptionPolicy = &tc.policy
		all, err := j.Evictions(pod)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range all {
			got += e.Node + ":"
			for _, victim := range e.Victims {
				got += " " + victim.Name
			}
			got += fmt.Sprintf(", %d; ", e.Violations)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.policy, got, tc.want)
		}
	}
}
