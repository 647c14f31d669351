package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// A status update changes no metadata that others own, and keeps what its sender does not know of.
func TestPreparePodStatus(t *testing.T) {
	const was = `
metadata: {name: p, deletionTimestamp: "2026-01-01T00:00:00Z"}
status:
  observedGeneration: 3
  resourceClaimStatuses: [{name: a, resourceClaimName: b}]
  extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: []}
  nodeAllocatableResourceClaimStatuses: [{resourceClaimName: d}]
  conditions: [{type: X, status: "True", observedGeneration: 1}, {type: X, status: "True", observedGeneration: 2}]`
	for name, c := range map[string]struct{ sent, want string }{
		"an old client": {
			`{metadata: {name: p, deletionTimestamp: "2027-01-01T00:00:00Z"}, status: {conditions: [{type: X, status: "True"}, {type: X, status: "True"}, {type: X, status: "True"}, {type: Y, status: "True"}]}}`,
			`
metadata: {name: p, deletionTimestamp: "2026-01-01T00:00:00Z"}
status:
  observedGeneration: 3
  resourceClaimStatuses: [{name: a, resourceClaimName: b}]
  extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: []}
  nodeAllocatableResourceClaimStatuses: [{resourceClaimName: d}]
  conditions:
  - {type: X, status: "True", observedGeneration: 1}
  - {type: X, status: "True", observedGeneration: 2}
  - {type: X, status: "True"}
  - {type: Y, status: "True"}`,
		},
		"one that knows": {
			`{metadata: {name: p}, status: {observedGeneration: 4, resourceClaimStatuses: [], nodeAllocatableResourceClaimStatuses: [], extendedResourceClaimStatus: {resourceClaimName: e}, conditions: [{type: X, status: "True", observedGeneration: 4}]}}`,
			`{metadata: {name: p, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {observedGeneration: 4, resourceClaimStatuses: [], nodeAllocatableResourceClaimStatuses: [], extendedResourceClaimStatus: {resourceClaimName: e}, conditions: [{type: X, status: "True", observedGeneration: 4}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, old, want := barePod(t, c.sent), barePod(t, was), barePod(t, c.want)
			preparePodStatus(pod, old)
			if diff := cmp.Diff(want, pod); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(barePod(t, was), old); diff != "" {
				t.Errorf("the stored pod was changed: %s", diff)
			}
		})
	}
}

// barePod is a pod without defaults.
func barePod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}
