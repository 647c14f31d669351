package parts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOfWhichServerAPodIs(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: PodName(Scheduler, "s-1"), Annotations: map[string]string{
				corev1.MirrorPodAnnotationKey: "x", SourceAnnotation: Source,
			}},
			Spec: corev1.PodSpec{NodeName: NodeName("s-1")},
		}
		if change != nil {
			change(p)
		}
		return p
	}
	if server, part, ok := Of(pod(nil)); server != "s-1" || part != Scheduler || !ok {
		t.Errorf("%q %q %v", server, part, ok)
	}
	for name, change := range map[string]func(*corev1.Pod){
		"another namespace": func(p *corev1.Pod) { p.Namespace = "default" },
		"no mirror":         func(p *corev1.Pod) { delete(p.Annotations, corev1.MirrorPodAnnotationKey) },
		"a kubelet's":       func(p *corev1.Pod) { p.Annotations[SourceAnnotation] = "file" },
		"of a node":         func(p *corev1.Pod) { p.Spec.NodeName = "s-1" },
		"of another server": func(p *corev1.Pod) { p.Spec.NodeName = NodeName("s-2") },
		"no part":           func(p *corev1.Pod) { p.Name = "web-s-1" },
	} {
		if server, part, ok := Of(pod(change)); ok {
			t.Errorf("%s: %s of %s", name, part, server)
		}
	}
}
