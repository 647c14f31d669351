package podkey

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "1", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web"}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestWhatAKeyTells(t *testing.T) {
	important := int32(5)
	same := Of(pod())
	for _, tt := range []struct {
		name                   string
		change                 func(*corev1.Pod)
		shape, peers, priority bool // whether it is another one
	}{
		{"name", func(p *corev1.Pod) { p.Name, p.UID = "q", "2" }, false, false, false},
		{"token", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x7"}} }, false, false, false},
		{"none said as empty", func(p *corev1.Pod) {
			p.Spec.Tolerations, p.Spec.NodeSelector, p.Spec.TopologySpreadConstraints = []corev1.Toleration{}, map[string]string{}, []corev1.TopologySpreadConstraint{}
			p.Spec.InitContainers, p.Status.ResourceClaimStatuses = []corev1.Container{}, []corev1.PodResourceClaimStatus{}
			p.Spec.Containers[0].Ports, p.Spec.Containers[0].Resources.Requests = []corev1.ContainerPort{}, corev1.ResourceList{}
		}, false, false, false},
		{"labels", func(p *corev1.Pod) { p.Labels = nil }, false, true, false},
		{"namespace", func(p *corev1.Pod) { p.Namespace = "other" }, false, true, false},
		{"node selector", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }, true, false, false},
		{"image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "db" }, true, false, false},
		{"priority", func(p *corev1.Pod) { p.Spec.Priority = &important }, false, false, true},
		{"node affinity", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }, true, false, false},
		{"pod affinity", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} }, false, true, false},
		{"spreading", func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
		}, false, true, false},
		{"requests", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Of(pod(tt.change))
			if (got.Shape != same.Shape) != tt.shape || (got.Peers != same.Peers) != tt.peers || (got.Priority != same.Priority) != tt.priority {
				t.Errorf("%+v\nbeside %+v", got, same)
			}
		})
	}
}
