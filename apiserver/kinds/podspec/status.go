package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// defaultStatus fills what a node agent leaves out of a pod's status.
func defaultStatus(status *corev1.PodStatus) {
	mirrorPodIP(status)
	for _, containers := range [][]corev1.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range containers {
			rule.RoundUp(containers[i].AllocatedResources)
			roundUp(containers[i].Resources)
		}
	}
	rule.RoundUp(status.AllocatedResources)
	roundUp(status.Resources)
}

// mirrorPodIP keeps the older single address and the list alike; for the sake of old node agents the single one wins.
func mirrorPodIP(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

func roundUp(resources *corev1.ResourceRequirements) {
	if resources != nil {
		rule.RoundUp(resources.Limits)
		rule.RoundUp(resources.Requests)
	}
}
