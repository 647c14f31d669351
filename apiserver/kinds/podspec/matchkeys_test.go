package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestResolveMatchKeys(t *testing.T) {
	app := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "hash": "1", "tenant": "a"}},
		Spec: corev1.PodSpec{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{LabelSelector: app(), MatchLabelKeys: []string{"hash", "missing"}},
				{MatchLabelKeys: []string{"hash"}},
			},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{LabelSelector: app(), MatchLabelKeys: []string{"hash"}, MismatchLabelKeys: []string{"tenant"}},
				},
			}},
		},
	}
	ResolveMatchKeys(pod)
	ResolveMatchKeys(pod) // as in a retried create
	spread := pod.Spec.TopologySpreadConstraints
	if got := metav1.FormatLabelSelector(spread[0].LabelSelector); got != "app=web,hash in (1)" {
		t.Errorf("spread selector = %s", got)
	}
	if spread[1].LabelSelector != nil {
		t.Error("a constraint without a selector selects nothing, and stays so")
	}
	term := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	if got := metav1.FormatLabelSelector(term.LabelSelector); got != "app=web,hash in (1),tenant notin (a)" {
		t.Errorf("affinity selector = %s", got)
	}
}
