package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func rule(action corev1.ContainerRestartRuleAction, operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes}}
}

// TestMayRestart: what a container says of itself goes before what its pod says, and its rules before its policy.
func TestMayRestart(t *testing.T) {
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	restart := corev1.ContainerRestartRuleActionRestart
	for name, c := range map[string]struct {
		pod   corev1.RestartPolicy
		own   corev1.ContainerRestartPolicy
		rules []corev1.ContainerRestartRule
		// after exit codes 0, 1 and 42
		main, init [3]bool
	}{
		"Always":                      {pod: corev1.RestartPolicyAlways, main: [3]bool{true, true, true}, init: [3]bool{false, true, true}},
		"OnFailure":                   {pod: corev1.RestartPolicyOnFailure, main: [3]bool{false, true, true}, init: [3]bool{false, true, true}},
		"Never":                       {pod: corev1.RestartPolicyNever},
		"own Never in Always":         {pod: corev1.RestartPolicyAlways, own: corev1.ContainerRestartPolicyNever},
		"own OnFailure in Never":      {pod: corev1.RestartPolicyNever, own: corev1.ContainerRestartPolicyOnFailure, main: [3]bool{false, true, true}, init: [3]bool{false, true, true}},
		"own Always in Never":         {pod: corev1.RestartPolicyNever, own: corev1.ContainerRestartPolicyAlways, main: [3]bool{true, true, true}, init: [3]bool{true, true, true}},
		"after 42 only":               {pod: corev1.RestartPolicyAlways, own: corev1.ContainerRestartPolicyNever, rules: []corev1.ContainerRestartRule{rule(restart, in, 7, 42)}, main: [3]bool{false, false, true}, init: [3]bool{false, false, true}},
		"not after 42":                {pod: corev1.RestartPolicyNever, own: corev1.ContainerRestartPolicyNever, rules: []corev1.ContainerRestartRule{rule(restart, notIn, 42)}, main: [3]bool{true, true, false}, init: [3]bool{false, true, false}},
		"the second rule fits":        {pod: corev1.RestartPolicyNever, own: corev1.ContainerRestartPolicyNever, rules: []corev1.ContainerRestartRule{rule(restart, in, 7), rule(restart, in, 1)}, main: [3]bool{false, true, false}, init: [3]bool{false, true, false}},
		"no rule fits, own OnFailure": {pod: corev1.RestartPolicyNever, own: corev1.ContainerRestartPolicyOnFailure, rules: []corev1.ContainerRestartRule{rule(restart, in, 7)}, main: [3]bool{false, true, true}, init: [3]bool{false, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			container := corev1.Container{Name: "main", RestartPolicyRules: c.rules}
			if c.own != "" {
				container.RestartPolicy = &c.own
			}
			initial := container
			initial.Name = "init"
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: c.pod, Containers: []corev1.Container{container}, InitContainers: []corev1.Container{initial}}}
			for i, code := range []int32{0, 1, 42} {
				if got := MayRestart(pod, "main", code); got != c.main[i] {
					t.Errorf("the container after %d: %v", code, got)
				}
				if got := MayRestart(pod, "init", code); got != c.init[i] {
					t.Errorf("the init container after %d: %v", code, got)
				}
			}
		})
	}
}

// TestPhaseOfOwnPolicies: a pod runs as long as one of its containers will run again.
func TestPhaseOfOwnPolicies(t *testing.T) {
	always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	for name, c := range map[string]struct {
		a, b  *corev1.ContainerRestartPolicy
		codes [2]int32
		want  corev1.PodPhase
	}{
		"one will run again":       {&always, &never, [2]int32{1, 1}, corev1.PodRunning},
		"none will, one failed":    {&never, &never, [2]int32{0, 1}, corev1.PodFailed},
		"none will, all succeeded": {&never, &never, [2]int32{0, 0}, corev1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
				Containers: []corev1.Container{{Name: "a", RestartPolicy: c.a}, {Name: "b", RestartPolicy: c.b}}}}
			s := &corev1.PodStatus{}
			for i, name := range []string{"a", "b"} {
				ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: c.codes[i]}}
				s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: name, State: ended})
			}
			if got := (&Input{Pod: pod}).phase(s); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
