package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

func admit(t *testing.T, pod *corev1.Pod) error {
	t.Helper()
	a := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "ns", pod.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	return New().(admission.MutationInterface).Admit(t.Context(), a, nil)
}

func TestPodsAreCompleted(t *testing.T) {
	pod := &corev1.Pod{}
	if err := admit(t, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.ServiceAccountName != "default" || *pod.Spec.Priority != 0 || *pod.Spec.PreemptionPolicy != corev1.PreemptLowerPriority {
		t.Errorf("spec = %+v", pod.Spec)
	}
	if len(pod.Spec.Tolerations) != 2 || *pod.Spec.Tolerations[0].TolerationSeconds != 300 {
		t.Errorf("tolerations = %+v", pod.Spec.Tolerations)
	}
}

func TestWhatAPodSaysIsKept(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: "robot", Tolerations: []corev1.Toleration{
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))},
	}}}
	if err := admit(t, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.ServiceAccountName != "robot" || len(pod.Spec.Tolerations) != 2 || *pod.Spec.Tolerations[0].TolerationSeconds != 5 {
		t.Errorf("spec = %+v", pod.Spec)
	}
}

func TestPriority(t *testing.T) {
	for name, c := range map[string]struct {
		class  string
		set    *int32
		want   int32
		refuse bool
	}{
		"none":           {want: 0},
		"node critical":  {class: "system-node-critical", want: 2000001000},
		"unknown class":  {class: "gold", refuse: true},
		"number by hand": {set: new(int32(7)), refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: c.class, Priority: c.set}}
			err := admit(t, pod)
			if (err != nil) != c.refuse {
				t.Fatalf("err = %v, want a refusal: %v", err, c.refuse)
			}
			if !c.refuse && *pod.Spec.Priority != c.want {
				t.Errorf("priority = %d, want %d", *pod.Spec.Priority, c.want)
			}
		})
	}
}
