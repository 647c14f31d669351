package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestValidatePodStatus(t *testing.T) {
	spec := corev1.PodSpec{NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}, Containers: []corev1.Container{{Name: "c"}}}
	for name, test := range map[string]struct {
		status string
		want   []string
	}{
		"fine":        {`{podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}], hostIP: 10.0.0.2, hostIPs: [{ip: 10.0.0.2}], observedGeneration: 1, resourceClaimStatuses: [{name: gpu, resourceClaimName: a}]}`, nil},
		"generations": {`{observedGeneration: -1, conditions: [{type: Ready, observedGeneration: -1}]}`, []string{`status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer`, `status.observedGeneration: Invalid value: -1: must be a non-negative integer`}},
		"no address":  {`{podIP: x, podIPs: [{ip: x}]}`, []string{`status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`}},
		"one of two":  {`{podIP: 10.0.0.1}`, []string{`status.podIPs: Invalid value: null: podIP and podIPs must either both be set or both be unset`}},
		"another":     {`{podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.2}], hostIPs: [{ip: 10.0.0.2}]}`, []string{"status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`", "status.podIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `podIP`"}},
		"one family":  {`{podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]}`, []string{`status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than one IP for each IP family`}},
		"as before":   {`{podIP: "010.0.0.9", podIPs: [{ip: "010.0.0.9"}]}`, nil},
		"nominated":   {`{nominatedNodeName: m}`, []string{`status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node`}},
		"claims": {`{resourceClaimStatuses: [{name: x}, {name: gpu, resourceClaimName: A}, {name: gpu}]}`, []string{
			`status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in ` + "`spec.resourceClaims`",
			`status.resourceClaimStatuses[1].resourceClaimName: Invalid value: "A": a lowercase RFC 1123 subdomain`, `status.resourceClaimStatuses[2].name: Duplicate value: "gpu"`}},
		"extended": {`{extendedResourceClaimStatus: {requestMappings: [{containerName: x, resourceName: r, requestName: a}, {containerName: c, resourceName: r, requestName: a}]}}`, []string{
			`status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "x": must match the name of an entry in spec.initContainers.name or spec.containers.name`,
			`status.extendedResourceClaimStatus.requestMappings[1].resourceName: Invalid value: "r": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`,
			`status.extendedResourceClaimStatus.resourceClaimName: Required value`}},
		"ephemeral": {`{ephemeralContainerStatuses: [{name: e, allocatedResourcesStatus: [{name: cpu}]}]}`, []string{`status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status`}},
	} {
		t.Run(name, func(t *testing.T) {
			old := &corev1.Pod{Spec: spec, Status: corev1.PodStatus{PodIP: "010.0.0.9", PodIPs: []corev1.PodIP{{IP: "010.0.0.9"}}}}
			pod := &corev1.Pod{Spec: spec}
			if err := yaml.UnmarshalStrict([]byte(test.status), &pod.Status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, kindstest.Messages(validatePodStatus(pod, old))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

// TestEndedContainersRunAgainWithAll: only a rule that restarts all lets containers run again that would never alone.
func TestEndedContainersRunAgainWithAll(t *testing.T) {
	for action, refused := range map[corev1.ContainerRestartRuleAction]int{
		corev1.ContainerRestartRuleActionRestartAllContainers: 0, corev1.ContainerRestartRuleActionRestart: 1,
	} {
		old := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{RestartPolicyRules: []corev1.ContainerRestartRule{{Action: action}}}}}}
		old.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		if errs := validateTransitions([]corev1.ContainerStatus{{Name: "a"}}, old, nil); len(errs) != refused {
			t.Errorf("%s: %v", action, errs)
		}
	}
}
