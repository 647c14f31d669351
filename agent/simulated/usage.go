package simulated

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Annotations of a pod that say what all of its containers together seem to use, in equal parts. Without them, or if
// they are no quantity of zero or more, each container uses what it requests.
const (
	// CPUAnnotation is in cores, "250m".
	CPUAnnotation = "setpoint.io/simulated-cpu"
	// MemoryAnnotation is in bytes, "64Mi".
	MemoryAnnotation = "setpoint.io/simulated-memory"
)

// Summary is what the agent of a simulated node would say at a moment of its pods, which are shared.
func Summary(node *corev1.Node, pods []*corev1.Pod, now time.Time) *stats.Summary {
	s := &stats.Summary{Pods: make([]stats.PodStats, 0, len(pods))}
	var cpu, memory uint64
	for _, pod := range pods {
		p := stats.PodStats{PodRef: stats.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}}
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			usedCPU := use(pod, CPUAnnotation, c.Resources.Requests.Cpu(), resource.Nano)
			usedMemory := use(pod, MemoryAnnotation, c.Resources.Requests.Memory(), 0)
			p.Containers = append(p.Containers, stats.ContainerStats{
				Name: c.Name, CPU: cpuStats(usedCPU, now), Memory: memoryStats(usedMemory, now),
			})
			cpu, memory = cpu+usedCPU, memory+usedMemory
		}
		s.Pods = append(s.Pods, p)
	}
	s.Node = stats.NodeStats{NodeName: node.Name, CPU: cpuStats(cpu, now), Memory: memoryStats(memory, now)}
	return s
}

// use is a container's part of what the annotation says, or what it requests, in units of the scale.
func use(pod *corev1.Pod, annotation string, request *resource.Quantity, scale resource.Scale) uint64 {
	if said, err := resource.ParseQuantity(pod.Annotations[annotation]); err == nil && said.Sign() >= 0 {
		return uint64(max(0, said.ScaledValue(scale))) / uint64(len(pod.Spec.Containers))
	}
	return uint64(max(0, request.ScaledValue(scale)))
}

func cpuStats(nanocores uint64, now time.Time) *stats.CPUStats {
	return &stats.CPUStats{Time: metav1.NewTime(now), UsageNanoCores: &nanocores}
}

func memoryStats(bytes uint64, now time.Time) *stats.MemoryStats {
	return &stats.MemoryStats{Time: metav1.NewTime(now), WorkingSetBytes: &bytes}
}
