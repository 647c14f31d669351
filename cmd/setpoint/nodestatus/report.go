package nodestatus

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

// Report is one screen of a node.
type Report struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Ready is the condition's status: True, False, or Unknown when nothing is heard of the node.
	Ready    string `json:"ready"`
	Cordoned bool   `json:"cordoned"`
	Version  string `json:"version"`
	Runtime  string `json:"runtime"`
	// Error is why the node did not tell what it uses.
	Error    string      `json:"error,omitempty"`
	CPU      Used        `json:"cpuMillicores"`
	Memory   Used        `json:"memoryBytes"`
	Disk     Used        `json:"diskBytes"`
	PodsMax  int64       `json:"podsMax"`
	Pods     []Pod       `json:"pods"`
	Pressure []Condition `json:"pressure"`
	Waiting  []Waiting   `json:"waiting"`
	// Others are the other nodes, and how this one's pods reach theirs.
	Others []Other `json:"others"`
}

// Other is another node, and how its pods are reached.
type Other struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	PodCIDR string `json:"podCIDR"`
	// PodCIDRs has the range of IPv6 too, if there is one.
	PodCIDRs []string `json:"podCIDRs"`
	plan.Choice
	// Second is how pods' addresses of IPv6 are reached, if it is by another way.
	Second *plan.Choice `json:"second,omitempty"`
}

// othersOf are all nodes but the one, and those without a network of their own.
func othersOf(node *corev1.Node, all []corev1.Node) []Other {
	others := []Other{}
	for i := range all {
		if simulatednode.Is(&all[i]) || all[i].Name == node.Name {
			continue
		}
		others = append(others, otherOf(plan.NodeOf(node), &all[i]))
	}
	slices.SortFunc(others, func(a, b Other) int { return cmp.Compare(a.Node, b.Node) })
	return others
}

func otherOf(own plan.Node, node *corev1.Node) Other {
	peer := plan.NodeOf(node)
	other := Other{
		Node: peer.Name, Address: unknownAddress(peer.IP), PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs,
		Choice: plan.Choose(own, peer),
	}
	if own.PodCIDR6.IsValid() && peer.PodCIDR6.IsValid() {
		if second := plan.ChooseSecond(own, peer); second.Way != other.Way {
			other.Second = &second
		}
	}
	return other
}

func unknownAddress(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// Used is missing what nobody told.
type Used struct {
	Used *int64 `json:"used,omitempty"`
	Of   *int64 `json:"of,omitempty"`
}

// Pod is a pod that has not ended.
type Pod struct {
	Namespace     string     `json:"namespace"`
	Name          string     `json:"name"`
	Phase         string     `json:"phase"`
	Restarts      int64      `json:"restarts"`
	Since         *time.Time `json:"since,omitempty"`
	CPUMillicores *int64     `json:"cpuMillicores,omitempty"`
	MemoryBytes   *int64     `json:"memoryBytes,omitempty"`
	DiskBytes     *int64     `json:"diskBytes,omitempty"`
}

// Condition is a condition that is not as it should be.
type Condition struct {
	Condition string    `json:"condition"`
	Status    string    `json:"status"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Since     time.Time `json:"since"`
}

// Waiting is a container that does not run yet.
type Waiting struct {
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	Container string     `json:"container"`
	Image     string     `json:"image"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

// reportNode puts together what the objects say and what the node says.
func reportNode(node *corev1.Node, pods []corev1.Pod, summary *stats.Summary) Report {
	report := Report{
		Name: node.Name, Created: node.CreationTimestamp.Time, Ready: string(corev1.ConditionUnknown), Cordoned: node.Spec.Unschedulable,
		Version: node.Status.NodeInfo.KubeletVersion, Runtime: node.Status.NodeInfo.ContainerRuntimeVersion,
		PodsMax: node.Status.Allocatable.Pods().Value(),
		Pods:    []Pod{}, Pressure: []Condition{}, Waiting: []Waiting{}, Others: []Other{},
	}
	cpu, memory := node.Status.Allocatable.Cpu().MilliValue(), node.Status.Allocatable.Memory().Value()
	report.CPU = Used{millicores(summary.Node.CPU), &cpu}
	report.Memory = Used{workingSet(summary.Node.Memory), &memory}
	if disk := summary.Node.Fs; disk != nil {
		report.Disk = Used{signed(disk.UsedBytes), signed(disk.CapacityBytes)}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			report.Ready = string(c.Status)
		}
		if (c.Type == corev1.NodeReady) != (c.Status == corev1.ConditionTrue) {
			report.Pressure = append(report.Pressure, Condition{
				string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time,
			})
		}
	}
	report.addPods(pods, summary)
	return report
}

// addPods adds those that have not ended, the one with the most memory first.
func (r *Report) addPods(pods []corev1.Pod, summary *stats.Summary) {
	used := map[string]stats.PodStats{}
	for _, pod := range summary.Pods {
		used[pod.PodRef.UID] = pod
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		of := used[string(pod.UID)]
		p := Pod{
			Namespace: pod.Namespace, Name: pod.Name, Phase: phaseOf(&pod), Since: startOf(&pod),
			CPUMillicores: millicores(of.CPU), MemoryBytes: workingSet(of.Memory), DiskBytes: diskOf(&of),
		}
		for _, status := range statusesOf(&pod) {
			p.Restarts += int64(status.RestartCount)
		}
		r.Pods = append(r.Pods, p)
		r.Waiting = append(r.Waiting, waitingOf(&pod)...)
	}
	slices.SortFunc(r.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(orZero(b.MemoryBytes), orZero(a.MemoryBytes)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(r.Waiting, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
}

func phaseOf(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	return cmp.Or(string(pod.Status.Phase), string(corev1.PodPending))
}

// startOf is when the node took the pod.
func startOf(pod *corev1.Pod) *time.Time {
	if pod.Status.StartTime == nil {
		return nil
	}
	return &pod.Status.StartTime.Time
}

func statusesOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
}

// podInitializing is why a container waits for others of its pod, and for nothing of its own.
const podInitializing = "PodInitializing"

// waitingOf are the containers that wait, or all of a pod that the node has not begun with.
func waitingOf(pod *corev1.Pod) []Waiting {
	var waiting []Waiting
	for _, status := range statusesOf(pod) {
		state := status.State.Waiting
		if state == nil || state.Reason == podInitializing {
			continue
		}
		since := startOf(pod)
		if ended := status.LastTerminationState.Terminated; ended != nil {
			since = &ended.FinishedAt.Time
		}
		waiting = append(waiting, Waiting{
			pod.Namespace, pod.Name, status.Name, cmp.Or(imageOf(pod, status.Name), status.Image), state.Reason, state.Message, since,
		})
	}
	if len(statusesOf(pod)) > 0 {
		return waiting
	}
	for _, c := range pod.Spec.Containers {
		waiting = append(waiting, Waiting{
			Namespace: pod.Namespace, Pod: pod.Name, Container: c.Name, Image: c.Image, Reason: string(corev1.PodPending), Since: startOf(pod),
		})
	}
	return waiting
}

// imageOf is the name by which a container asks for its image.
func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// diskOf is what the node says of a pod or, if it says only that of the containers, their sum.
func diskOf(pod *stats.PodStats) *int64 {
	if pod.EphemeralStorage != nil {
		return signed(pod.EphemeralStorage.UsedBytes)
	}
	var sum *uint64
	for _, c := range pod.Containers {
		for _, fs := range []*stats.FsStats{c.Rootfs, c.Logs} {
			if fs != nil && fs.UsedBytes != nil {
				total := *fs.UsedBytes
				if sum != nil {
					total += *sum
				}
				sum = &total
			}
		}
	}
	return signed(sum)
}

func millicores(cpu *stats.CPUStats) *int64 {
	const nanosPerMilli = 1_000_000
	if cpu == nil || cpu.UsageNanoCores == nil {
		return nil
	}
	milli := int64(*cpu.UsageNanoCores / nanosPerMilli)
	return &milli
}

func workingSet(memory *stats.MemoryStats) *int64 {
	if memory == nil {
		return nil
	}
	return signed(memory.WorkingSetBytes)
}

func signed(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	value := int64(*n)
	return &value
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
