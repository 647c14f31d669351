package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MayRestart reports whether policy allows another incarnation of the named container after it ended with code: what the
// container says of itself or, if it says nothing, the pod's policy (KEP-5307).
func MayRestart(pod *corev1.Pod, name string, code int32) bool {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return IsSidecar(c) || code != 0 && mayRestart(pod, c, code)
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return mayRestart(pod, c, code)
		}
	}
	return false // an ephemeral one
}

func mayRestart(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		if slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool { return restarts(&r, code) }) {
			return true
		}
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// restarts tells whether a rule restarts a container that ended with code. Rules do nothing else: those that restart all
// containers are refused (package podfields).
func restarts(r *corev1.ContainerRestartRule, code int32) bool {
	if r.Action != corev1.ContainerRestartRuleActionRestart || r.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(r.ExitCodes.Values, code)
	switch r.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}
