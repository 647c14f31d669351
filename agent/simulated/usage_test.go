package simulated

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSummary(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	for name, c := range map[string]struct {
		annotations map[string]string
		cpu, memory uint64 // of each of two containers
	}{
		"requests":  {nil, 100e6, 32 << 20},
		"said":      {map[string]string{CPUAnnotation: "1", MemoryAnnotation: "1Gi"}, 500e6, 512 << 20},
		"zero":      {map[string]string{CPUAnnotation: "0", MemoryAnnotation: "0"}, 0, 0},
		"one only":  {map[string]string{MemoryAnnotation: "1Gi"}, 100e6, 512 << 20},
		"negative":  {map[string]string{CPUAnnotation: "-1"}, 100e6, 32 << 20},
		"no number": {map[string]string{CPUAnnotation: "NaN", MemoryAnnotation: "much"}, 100e6, 32 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			pod := boundPod("p", "sim-1")
			pod.Annotations = c.annotations
			pod.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].Resources.Requests = requests
			}
			s := Summary(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sim-1"}}, []*corev1.Pod{pod}, now)
			if len(s.Pods) != 1 || s.Pods[0].PodRef.UID != "p" || len(s.Pods[0].Containers) != 2 || s.Node.NodeName != "sim-1" {
				t.Fatalf("%+v", s)
			}
			for _, got := range s.Pods[0].Containers {
				if *got.CPU.UsageNanoCores != c.cpu || *got.Memory.WorkingSetBytes != c.memory || !got.CPU.Time.Time.Equal(now) {
					t.Errorf("%s: %d, %d", got.Name, *got.CPU.UsageNanoCores, *got.Memory.WorkingSetBytes)
				}
			}
			if *s.Node.CPU.UsageNanoCores != 2*c.cpu || *s.Node.Memory.WorkingSetBytes != 2*c.memory {
				t.Errorf("the node: %d, %d", *s.Node.CPU.UsageNanoCores, *s.Node.Memory.WorkingSetBytes)
			}
		})
	}
}
