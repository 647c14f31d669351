package plugin

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// HostPort is a port a pod takes on its node.
type HostPort struct {
	IP       string // 0.0.0.0 means every address
	Protocol corev1.Protocol
	Port     int32
}

// Pod is a pod with everything that plugins ask for already parsed.
type Pod struct {
	*corev1.Pod
	Requests  Resources // what is reserved on the node
	Scored    Resources // CPU and memory with defaults for containers that ask for nothing
	HostPorts []HostPort
	// NodeAffinity joins spec.nodeSelector and the required node affinity.
	NodeAffinity nodeaffinity.RequiredNodeAffinity
	Affinity     Terms
	// Member is what the views count of the pod where it is placed.
	Member *views.Member
	// Needs is filled when the pod is tried; that of a placed pod is not looked at.
	Needs Needs
}

// NewPod parses a pod. The pod is shared and must not change afterwards.
func NewPod(pod *corev1.Pod) *Pod {
	p := &Pod{Pod: pod, HostPorts: hostPorts(pod), NodeAffinity: nodeaffinity.GetRequiredNodeAffinity(pod), Affinity: newTerms(pod)}
	p.Requests, p.Scored = podRequests(pod)
	p.Member = views.NewMember(views.Member{
		Namespace: pod.Namespace, Labels: pod.Labels, Leaving: pod.DeletionTimestamp != nil, Claims: claimsOf(pod), Terms: p.Affinity.All(),
	})
	return p
}

// claimsOf are the names of the PersistentVolumeClaims that the pod names itself.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && !slices.Contains(names, claim.ClaimName) {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

// SameForOthers tells that replacing p by other on its node changes no judgement about any other pod.
func (p *Pod) SameForOthers(other *Pod) bool {
	return p.Requests.Equal(other.Requests) && p.Scored.Equal(other.Scored) && maps.Equal(p.Labels, other.Labels) &&
		(p.DeletionTimestamp == nil) == (other.DeletionTimestamp == nil)
}

// Priority is spec.priority, 0 if unset.
func (p *Pod) Priority() int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// SelectsNodes tells that the pod has a node selector or a required node affinity.
func (p *Pod) SelectsNodes() bool {
	affinity := p.Spec.Affinity
	return len(p.Spec.NodeSelector) > 0 ||
		affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// NodeAffinityID is the same for pods that select nodes by the same words.
func (p *Pod) NodeAffinityID() string {
	var required *corev1.NodeSelector
	if p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil {
		required = p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return p.textOf([]any{p.Spec.NodeSelector, required})
}

// TolerationsID is the same for pods with the same tolerations.
func (p *Pod) TolerationsID() string { return p.textOf(p.Spec.Tolerations) }

func (p *Pod) textOf(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		return string(p.UID) // cannot happen for API types; the pod then shares with nobody
	}
	return string(text)
}

// PinnedTo gives the node names outside of which the pod can never fit, as the DaemonSet controller writes them;
// nil if the pod is not pinned.
func (p *Pod) PinnedTo() []string {
	affinity := p.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var names []string
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		pinned := pinnedByTerm(term)
		if pinned == nil {
			return nil // one term without a name lets any node in
		}
		names = append(names, pinned...)
	}
	return names
}

func pinnedByTerm(term corev1.NodeSelectorTerm) []string {
	for _, field := range term.MatchFields {
		if field.Key == "metadata.name" && field.Operator == corev1.NodeSelectorOpIn {
			return field.Values
		}
	}
	return nil
}

func hostPorts(pod *corev1.Pod) []HostPort {
	var ports []HostPort
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			ports = appendHostPorts(ports, c)
		}
	}
	for i := range pod.Spec.Containers {
		ports = appendHostPorts(ports, &pod.Spec.Containers[i])
	}
	return ports
}

func appendHostPorts(ports []HostPort, c *corev1.Container) []HostPort {
	for _, p := range c.Ports {
		if p.HostPort <= 0 {
			continue
		}
		port := HostPort{IP: p.HostIP, Protocol: p.Protocol, Port: p.HostPort}
		if port.IP == "" {
			port.IP = anyAddress
		}
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		ports = append(ports, port)
	}
	return ports
}

const anyAddress = "0.0.0.0"

// Conflicts tells that both ports cannot be taken on one node.
func (p HostPort) Conflicts(other HostPort) bool {
	return p.Port == other.Port && p.Protocol == other.Protocol &&
		(p.IP == other.IP || p.IP == anyAddress || other.IP == anyAddress)
}
