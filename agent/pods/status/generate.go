package status

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// Waiting says why a container is not running although it should.
type Waiting struct {
	Reason, Message string
	// Restarts is true for one that starts again whatever its pod's policy makes of its end.
	Restarts bool
}

// Rejection says why a pod as a whole has failed.
type Rejection struct {
	Reason, Message string
	// GraceSeconds, if not nil, is the longest time that its containers get to end by themselves.
	GraceSeconds *int64
	// Disrupted adds the condition DisruptionTarget: the node ended the pod for its own sake (KEP-3329).
	Disrupted bool
}

// Input is all that a pod's status depends on.
type Input struct {
	// Pod is the API object with its last known status.
	Pod *corev1.Pod
	// Runtime is what the runtime says.
	Runtime *observed.Pod
	// Waiting holds, for containers by name, why they cannot start.
	Waiting map[string]Waiting
	// Ready and Started are the probes' verdicts about a running container.
	Ready, Started func(c *observed.Container) bool
	// TerminationMessage is what an exited container left behind.
	TerminationMessage func(c *observed.Container) string
	// Ended says that no container of the pod will run again.
	Ended bool
	// Held: the pod still has what others may get once it has ended, so it has not.
	Held bool
	// Rejected makes the phase Failed as soon as no container runs.
	Rejected *Rejection
	Resize   Resize
	// RestartsAll: containers are stopped and removed because all start again. Removed are the last incarnations that were, by name.
	RestartsAll bool
	Removed     map[string]*observed.Container
	// HostIPs are the node's addresses, the primary one first.
	HostIPs []string
	// RuntimeName prefixes container ids: "setpoint" gives "setpoint://id".
	RuntimeName string
	Now         time.Time
}

// Generate is the pod's status. Foreign conditions are not in it: Merge adds them.
func Generate(in Input) corev1.PodStatus {
	old := in.Pod.Status
	s := corev1.PodStatus{
		ObservedGeneration: in.Pod.Generation,
		StartTime:          old.StartTime,
		QOSClass:           qos.GetPodQOS(in.Pod),
		NominatedNodeName:  old.NominatedNodeName,
		Message:            old.Message,
		Reason:             old.Reason,
	}
	if s.StartTime == nil {
		now := metav1.NewTime(in.Now.Truncate(time.Second))
		s.StartTime = &now
	}
	in.addresses(&s)
	if !in.neverStarted() {
		in.containers(&s)
	}
	in.podResources(&s)
	s.Phase = in.phase(&s)
	if in.rejected() {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, in.Rejected.Reason, in.Rejected.Message
	}
	if in.Held && terminal(s.Phase) {
		s.Phase, s.Reason, s.Message = cmp.Or(old.Phase, corev1.PodPending), old.Reason, old.Message
	}
	if terminal(old.Phase) {
		s.Phase = old.Phase // a finished pod stays finished
	}
	s.Conditions = in.conditions(&s)
	return s
}

// rejected: a pod that may still run something has not failed yet, or its controller would replace it too early.
func (in *Input) rejected() bool { return in.Rejected != nil && len(in.Runtime.Running()) == 0 }

// neverStarted: a pod that was rejected before anything of it was seen has no containers to tell of, as upstream.
func (in *Input) neverStarted() bool {
	old := in.Pod.Status
	seen := len(in.Runtime.Sandboxes) + len(in.Runtime.Containers) + len(old.ContainerStatuses) + len(old.InitContainerStatuses)
	return seen == 0 && (in.Rejected != nil || terminal(old.Phase))
}

func terminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// addresses fills in the node's and the pod's addresses.
func (in *Input) addresses(s *corev1.PodStatus) {
	for i, ip := range in.HostIPs {
		if i == 0 {
			s.HostIP = ip
		}
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip})
	}
	ips := in.podIPs()
	for i, ip := range ips {
		if i == 0 {
			s.PodIP = ip
		}
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
	}
}

func (in *Input) podIPs() []string {
	var out []string
	if in.Runtime.ReadySandbox() == nil {
		if in.Ended || len(in.Runtime.Running()) > 0 {
			for _, ip := range in.Pod.Status.PodIPs {
				out = append(out, ip.IP)
			}
		}
		return out
	}
	if in.Pod.Spec.HostNetwork {
		return in.HostIPs
	}
	network := in.Runtime.ReadySandbox().Network
	if network.GetIp() != "" {
		out = append(out, network.Ip)
	}
	for _, ip := range network.GetAdditionalIps() {
		out = append(out, ip.Ip)
	}
	return out
}
