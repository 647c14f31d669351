package usage

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const (
	// containersLimit bounds the containers in one answer.
	containersLimit = 4096
	// clockSkewLimit is how far a node's clock may be from this server's. An older figure is stale.
	clockSkewLimit = 5 * time.Minute
	// memoryLimit and coresLimit are more than any machine has.
	memoryLimit    = 1 << 50
	coresLimit     = 1 << 16
	nanosecondsMax = 1 << 62
)

var (
	errAnotherNode       = errors.New("the answer is another node's")
	errTooManyContainers = errors.New("the answer has too many containers")
)

// staticPodAnnotation holds the uid by which a kubelet knows a pod that it made itself.
const staticPodAnnotation = "kubernetes.io/config.hash"

// answer is what can be believed of a summary.
type answer struct {
	node *sample
	pods map[types.UID]podSamples
}

// podSamples are those of all containers of a pod, by name.
type podSamples map[string]sample

// sample is what a node said of itself or of a container at one moment.
type sample struct {
	at time.Time // by the node's clock
	// started is when the container did, if the node says so.
	started time.Time
	// spent is the CPU time since then; nil: the node does not say.
	spent *uint64
	// nanocores is the rate as the node has it; nil: it does not say.
	nanocores *uint64
	memory    uint64
}

// accept takes out of a summary what a node may say: of itself and of the pods bound to it. A pod with a container
// that cannot be believed is left out.
func accept(summary *stats.Summary, node *corev1.Node, pods []*corev1.Pod, now time.Time) (answer, error) {
	if summary.Node.NodeName != node.Name {
		return answer{}, errAnotherNode
	}
	containers := 0
	for i := range summary.Pods {
		containers += len(summary.Pods[i].Containers)
	}
	if containers > containersLimit || len(summary.Pods) > containersLimit {
		return answer{}, errTooManyContainers
	}
	bound := make(map[types.NamespacedName]*corev1.Pod, len(pods))
	for _, pod := range pods {
		bound[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	said := answer{pods: make(map[types.UID]podSamples, len(pods))}
	if s, ok := sampleOf(summary.Node.CPU, summary.Node.Memory, summary.Node.StartTime, now); ok {
		said.node = &s
	}
	for i := range summary.Pods {
		ref := summary.Pods[i].PodRef
		pod := bound[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]
		if pod == nil || ref.UID != string(pod.UID) && ref.UID != pod.Annotations[staticPodAnnotation] {
			continue
		}
		delete(bound, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) // the first one counts
		if samples := samplesOf(pod, summary.Pods[i].Containers, now); samples != nil {
			said.pods[pod.UID] = samples
		}
	}
	return said, nil
}

// samplesOf is nil unless each container can be believed.
func samplesOf(pod *corev1.Pod, containers []stats.ContainerStats, now time.Time) podSamples {
	names := containersOf(pod)
	samples := make(podSamples, len(containers))
	for i := range containers {
		c := &containers[i]
		s, ok := sampleOf(c.CPU, c.Memory, c.StartTime, now)
		if _, twice := samples[c.Name]; !ok || twice || !names[c.Name] {
			return nil
		}
		samples[c.Name] = s
	}
	if len(samples) == 0 {
		return nil
	}
	return samples
}

// containersOf are the names of all containers of a pod.
func containersOf(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		names[pod.Spec.InitContainers[i].Name] = true
	}
	for i := range pod.Spec.Containers {
		names[pod.Spec.Containers[i].Name] = true
	}
	for i := range pod.Spec.EphemeralContainers {
		names[pod.Spec.EphemeralContainers[i].Name] = true
	}
	return names
}

func sampleOf(cpu *stats.CPUStats, memory *stats.MemoryStats, started metav1.Time, now time.Time) (sample, bool) {
	if cpu == nil || memory == nil || memory.WorkingSetBytes == nil || *memory.WorkingSetBytes > memoryLimit {
		return sample{}, false
	}
	if d := now.Sub(cpu.Time.Time); d > clockSkewLimit || d < -clockSkewLimit {
		return sample{}, false
	}
	if cpu.UsageCoreNanoSeconds == nil && cpu.UsageNanoCores == nil {
		return sample{}, false
	}
	if cpu.UsageCoreNanoSeconds != nil && *cpu.UsageCoreNanoSeconds > nanosecondsMax {
		return sample{}, false
	}
	return sample{
		at: cpu.Time.Time, started: started.Time, spent: cpu.UsageCoreNanoSeconds, nanocores: cpu.UsageNanoCores, memory: *memory.WorkingSetBytes,
	}, true
}
