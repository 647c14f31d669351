package serverpods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/internal/parts"
)

// Leading is the condition of the pods of loops and store that says whether this server is the elected one.
const Leading corev1.PodConditionType = "setpoint.io/Leading"

// Reasons of conditions.
const (
	reasonElected   = "Elected"
	reasonStandby   = "Standby"
	reasonUnhealthy = "Unhealthy"
	reasonLearner   = "NoVoter"
	reasonSilent    = "ServerUnreachable"
)

// podOf describes the pod of a part. It tolerates every taint, as all pods that a kubelet runs from its own files.
func podOf(part string, server Server) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: parts.Namespace, Name: parts.PodName(part, server.Name),
			Labels: map[string]string{parts.ComponentLabel: parts.Label(part), parts.TierLabel: parts.Tier},
			Annotations: map[string]string{
				corev1.MirrorPodAnnotationKey: parts.NodeName(server.Name), parts.SourceAnnotation: parts.Source,
			},
		},
		Spec: corev1.PodSpec{
			NodeName: parts.NodeName(server.Name), HostNetwork: true, RestartPolicy: corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64), EnableServiceLinks: new(bool), AutomountServiceAccountToken: new(bool),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			Containers:  []corev1.Container{{Name: part, Image: imageOf(server.Version), ImagePullPolicy: corev1.PullNever}},
		},
	}
}

func imageOf(version string) string { return "setpoint.local/setpoint:v" + version }

// statusOf is what the pod should say of the part. What an unreachable server said before is kept, but that it is ready.
func statusOf(pod *corev1.Pod, part string, server Server, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	if server.Address != "" {
		status.HostIP, status.PodIP = server.Address, server.Address
		status.HostIPs, status.PodIPs = []corev1.HostIP{{IP: server.Address}}, []corev1.PodIP{{IP: server.Address}}
	}
	ready, reason, message := readiness(part, server)
	if server.Err == nil {
		status.StartTime = new(metav1.NewTime(server.StartedAt.Truncate(time.Second)))
		status.ContainerStatuses = []corev1.ContainerStatus{containerOf(status.ContainerStatuses, part, server)}
	}
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = ready
	}
	set := func(t corev1.PodConditionType, is bool, reason, message string) {
		next := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
		if is {
			next.Status = corev1.ConditionTrue
		}
		status.Conditions = conditions.Pods.Set(status.Conditions, next, now.Truncate(time.Second))
	}
	set(corev1.PodScheduled, true, "", "")
	set(corev1.PodInitialized, true, "", "")
	set(corev1.ContainersReady, ready, reason, message)
	set(corev1.PodReady, ready, reason, message)
	if part != parts.APIServer { // which every server is
		set(Leading, server.Leads, leadingReason(server.Leads), "")
	}
	return status
}

func leadingReason(leads bool) string {
	if leads {
		return reasonElected
	}
	return reasonStandby
}

// readiness says whether a part could do its work there, whether it is elected to or not.
func readiness(part string, server Server) (ready bool, reason, message string) {
	loops := part == parts.ControllerManager || part == parts.Scheduler
	switch trouble := server.Troubles[part]; {
	case server.Err != nil:
		return false, reasonSilent, "the server does not answer"
	case trouble != "":
		return false, reasonUnhealthy, trouble
	case loops && !server.Voter:
		return false, reasonLearner, "the server has no vote yet, so it cannot be elected"
	}
	return true, "", ""
}

// containerOf is the only container: the process of the server. A later start of it is a restart.
func containerOf(before []corev1.ContainerStatus, part string, server Server) corev1.ContainerStatus {
	started := metav1.NewTime(server.StartedAt.Truncate(time.Second))
	image := imageOf(server.Version)
	c := corev1.ContainerStatus{
		Name: part, Image: image, ImageID: image, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}
	if len(before) == 1 && before[0].State.Running != nil {
		c.RestartCount = before[0].RestartCount
		if !before[0].State.Running.StartedAt.Equal(&started) {
			c.RestartCount++
		}
	}
	return c
}
