package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// verdict is what the pod failure policy says of a failed pod.
type verdict struct {
	// counts is false for failures that are ignored.
	counts bool
	// failsIndex and failsJob end the pod's index or the whole Job; message says why.
	failsIndex, failsJob bool
	message              string
}

// judge applies the first rule of the Job's policy that matches; without one every failure counts.
func judge(job *batchv1.Job, pod *corev1.Pod) verdict {
	if job.Spec.PodFailurePolicy == nil {
		return verdict{counts: true}
	}
	for i := range job.Spec.PodFailurePolicy.Rules {
		rule := &job.Spec.PodFailurePolicy.Rules[i]
		why, matches := matchRule(rule, pod)
		if !matches {
			continue
		}
		switch rule.Action {
		case batchv1.PodFailurePolicyActionIgnore:
			return verdict{}
		case batchv1.PodFailurePolicyActionFailIndex:
			return verdict{counts: true, failsIndex: true}
		case batchv1.PodFailurePolicyActionCount:
			return verdict{counts: true}
		case batchv1.PodFailurePolicyActionFailJob:
			return verdict{counts: true, failsJob: true, message: fmt.Sprintf("%s matching %v rule at index %d", why, rule.Action, i)}
		}
	}
	return verdict{counts: true}
}

// matchRule tells whether a rule matches, and by what.
func matchRule(rule *batchv1.PodFailurePolicyRule, pod *corev1.Pod) (why string, matches bool) {
	if rule.OnExitCodes != nil {
		c := exited(pod, rule.OnExitCodes)
		if c == nil {
			return "", false
		}
		return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d",
			c.Name, pod.Namespace, pod.Name, c.State.Terminated.ExitCode), true
	}
	for _, condition := range pod.Status.Conditions {
		for _, pattern := range rule.OnPodConditions {
			if condition.Type == pattern.Type && condition.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %v", pod.Namespace, pod.Name, condition.Type), true
			}
		}
	}
	return "", false
}

// exited is the first container that ended with a code that the rule is about.
func exited(pod *corev1.Pod, rule *batchv1.PodFailurePolicyOnExitCodesRequirement) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			ended := list[i].State.Terminated
			if ended == nil || ended.ExitCode == 0 || rule.ContainerName != nil && *rule.ContainerName != list[i].Name {
				continue
			}
			wanted := batchv1.PodFailurePolicyOnExitCodesOpNotIn
			if slices.Contains(rule.Values, ended.ExitCode) {
				wanted = batchv1.PodFailurePolicyOnExitCodesOpIn
			}
			if rule.Operator == wanted {
				return &list[i]
			}
		}
	}
	return nil
}

// meetsSuccessPolicy tells whether the indexes that succeeded are enough, and by which rule.
func meetsSuccessPolicy(job *batchv1.Job, succeeded indexes) (message string, meets bool) {
	if job.Spec.SuccessPolicy == nil || len(succeeded) == 0 {
		return "", false
	}
	for i, rule := range job.Spec.SuccessPolicy.Rules {
		if meetsRule(rule, succeeded, int(*job.Spec.Completions)) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

func meetsRule(rule batchv1.SuccessPolicyRule, succeeded indexes, completions int) bool {
	if rule.SucceededIndexes == nil {
		return rule.SucceededCount != nil && succeeded.total() >= int(*rule.SucceededCount)
	}
	wanted := parseIndexes(*rule.SucceededIndexes, completions)
	have := wanted.common(succeeded)
	return len(wanted) > 0 && (have == wanted.total() || rule.SucceededCount != nil && have >= int(*rule.SucceededCount))
}
