package eviction

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestWhichPodsStartUnderPressure(t *testing.T) {
	bestEffort := podOf("", "", container("a", ""))
	burstable := podOf("", "", container("a", ""))
	burstable.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
	tolerant := podOf("", "", container("a", ""))
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}
	important := podOf("", "", container("a", ""))
	high := int32(systemCritical)
	important.Spec.Priority = &high
	memory := []corev1.NodeConditionType{corev1.NodeMemoryPressure}
	disk := []corev1.NodeConditionType{corev1.NodeDiskPressure}
	both := []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure}
	for _, c := range []struct {
		name      string
		pod       *corev1.Pod
		pressures []corev1.NodeConditionType
		want      string
	}{
		{"none", bestEffort, nil, ""},
		{"memory, best effort", bestEffort, memory, "The node had condition: [MemoryPressure]. "},
		{"memory, with a request", burstable, memory, ""},
		{"memory, tolerated", tolerant, memory, ""},
		{"disk", burstable, disk, "The node had condition: [DiskPressure]. "},
		{"disk and memory, of which one is tolerated", tolerant, both, "The node had condition: [DiskPressure MemoryPressure]. "},
		{"process ids", burstable, []corev1.NodeConditionType{corev1.NodePIDPressure}, "The node had condition: [PIDPressure]. "},
		{"critical", important, both, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Admit(c.pod, c.pressures); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
