package podconfig

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
)

const (
	sharesMin    = 2
	sharesMax    = 262144
	sharesPerCPU = 1024
	milliPerCPU  = 1000
	quotaMinUs   = 1000

	oomGuaranteed = -997
	oomBestEffort = 1000
	// nodeCriticalPriority: pods at or above it are protected as guaranteed ones.
	nodeCriticalPriority = 2000001000
)

// Node is what the shares of its pods depend on.
type Node struct {
	// Allocatable is what its pods can have.
	Allocatable corev1.ResourceList
	// QuotaPeriod is within which a quota of CPU time is used up; 0 is DefaultQuotaPeriod.
	QuotaPeriod time.Duration
}

// DefaultQuotaPeriod is upstream's, and the kernel's.
const DefaultQuotaPeriod = 100 * time.Millisecond

// Resources is c's share of the machine.
func Resources(pod *corev1.Pod, c *corev1.Container, node Node) *runtimeapi.LinuxContainerResources {
	r := node.linuxResources(c.Resources.Requests, c.Resources.Limits)
	r.OomScoreAdj = oomScore(pod, c, node.Allocatable.Memory().Value())
	r.HugepageLimits = hugepages.Limits(node.Allocatable, ofPod(pod).Limits, c.Resources.Limits)
	return r
}

func (n Node) linuxResources(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	request, limit := requests.Cpu(), limits.Cpu()
	if _, ok := requests[corev1.ResourceCPU]; !ok {
		request = limit
	}
	r := &runtimeapi.LinuxContainerResources{CpuShares: shares(request.MilliValue()), MemoryLimitInBytes: limits.Memory().Value()}
	if milli := limit.MilliValue(); milli > 0 {
		r.CpuPeriod = cmp.Or(n.QuotaPeriod, DefaultQuotaPeriod).Microseconds()
		r.CpuQuota = max(quotaMinUs, milli*r.CpuPeriod/milliPerCPU)
	}
	return r
}

func shares(milliCPU int64) int64 {
	return min(sharesMax, max(sharesMin, milliCPU*sharesPerCPU/milliPerCPU))
}

// oomScore lets the kernel kill first what asked for least, as upstream's.
func oomScore(pod *corev1.Pod, c *corev1.Container, memoryBytes int64) int64 {
	if p := pod.Spec.Priority; p != nil && *p >= nodeCriticalPriority {
		return oomGuaranteed
	}
	switch qos.GetPodQOS(pod) {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	if memoryBytes <= 0 {
		return oomBestEffort - 1
	}
	score := oomBestEffort - oomBestEffort*c.Resources.Requests.Memory().Value()/memoryBytes
	return min(oomBestEffort-1, max(oomBestEffort+oomGuaranteed, score))
}

// PodResources bounds the pod's cgroup. A limit counts if the pod has it, or if every container has one; of huge pages the pod has what
// it asks for.
func PodResources(pod *corev1.Pod, node Node) *runtimeapi.LinuxContainerResources {
	limits := corev1.ResourceList{}
	all := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if !ofPod(pod).Limits.Name(name, resource.DecimalSI).IsZero() || everyContainerLimits(pod, name) {
			limits[name] = all[name]
		}
	}
	wanted := requests(pod)
	r := node.linuxResources(wanted, limits)
	r.HugepageLimits = hugepages.Limits(node.Allocatable, wanted)
	return r
}

// ofPod is what the pod asks for as a whole.
func ofPod(pod *corev1.Pod) *corev1.ResourceRequirements {
	if pod.Spec.Resources == nil {
		return &corev1.ResourceRequirements{}
	}
	return pod.Spec.Resources
}

func everyContainerLimits(pod *corev1.Pod, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if q, ok := list[i].Resources.Limits[name]; !ok || q.IsZero() {
				return false
			}
		}
	}
	return true
}

// CgroupParent is the pod's cgroup; the runtime creates and removes it.
func CgroupParent(pod *corev1.Pod) string {
	uid := "/pod" + string(pod.UID)
	switch qos.GetPodQOS(pod) {
	case corev1.PodQOSBurstable:
		return "/kubepods/burstable" + uid
	case corev1.PodQOSBestEffort:
		return "/kubepods/besteffort" + uid
	default:
		return "/kubepods" + uid
	}
}
