package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Of a pod's addresses each is made from the other, and amounts are whole thousandths.
func TestDefaultStatus(t *testing.T) {
	for name, c := range map[string]struct{ sent, want string }{
		"nothing":       {`{}`, `{}`},
		"one address":   {`{podIP: 10.0.0.7}`, `{podIP: 10.0.0.7, podIPs: [{ip: 10.0.0.7}]}`},
		"a list":        {`{podIPs: [{ip: 10.0.0.7}, {ip: "fd00::7"}]}`, `{podIP: 10.0.0.7, podIPs: [{ip: 10.0.0.7}, {ip: "fd00::7"}]}`},
		"both":          {`{podIP: 10.0.0.7, podIPs: [{ip: 10.0.0.7}, {ip: "fd00::7"}]}`, `{podIP: 10.0.0.7, podIPs: [{ip: 10.0.0.7}, {ip: "fd00::7"}]}`},
		"two addresses": {`{podIP: 10.0.0.8, podIPs: [{ip: 10.0.0.7}, {ip: "fd00::7"}]}`, `{podIP: 10.0.0.8, podIPs: [{ip: 10.0.0.8}]}`},
		"of the host":   {`{hostIP: 10.1.0.1}`, `{hostIP: 10.1.0.1}`},
		"amounts of the pod": {
			`{allocatedResources: {cpu: 1u}, resources: {limits: {cpu: 1u}, requests: {cpu: 1u}}}`,
			`{allocatedResources: {cpu: 1m}, resources: {limits: {cpu: 1m}, requests: {cpu: 1m}}}`,
		},
		"amounts of containers": {
			`{initContainerStatuses: [{allocatedResources: {cpu: 1u}}], containerStatuses: [{resources: {limits: {cpu: 1u}}}], ephemeralContainerStatuses: [{resources: {requests: {cpu: 1u}}}]}`,
			`{initContainerStatuses: [{allocatedResources: {cpu: 1m}}], containerStatuses: [{resources: {limits: {cpu: 1m}}}], ephemeralContainerStatuses: [{resources: {requests: {cpu: 1m}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: readStatus(t, c.sent)}
			DefaultPod(pod)
			if diff := cmp.Diff(readStatus(t, c.want), pod.Status); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func readStatus(t *testing.T, text string) (status corev1.PodStatus) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	return status
}
