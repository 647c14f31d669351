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
		if ruleFor(c, code) != "" {
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

// ruleFor is what the first rule says that fits the code; "": none fits.
func ruleFor(c *corev1.Container, code int32) corev1.ContainerRestartRuleAction {
	i := slices.IndexFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool { return fits(r.ExitCodes, code) })
	if i < 0 {
		return ""
	}
	return c.RestartPolicyRules[i].Action
}

func fits(codes *corev1.ContainerRestartRuleOnExitCodes, code int32) bool {
	if codes == nil {
		return false
	}
	listed := slices.Contains(codes.Values, code)
	switch codes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}
