package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestValidateAllocatedResources(t *testing.T) {
	const spec = `spec:
  containers: [{name: a, image: a, resources: {requests: {example.com/gpu: "1"}, claims: [{name: c}, {name: d, request: r}]}}]
status:
  extendedResourceClaimStatus: {resourceClaimName: e, requestMappings: [{containerName: a, resourceName: example.com/gpu, requestName: q}]}
`
	const at, name = "status.containerStatuses[0].allocatedResourcesStatus[0].", "status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "
	const claims = ": must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
	for status, want := range map[string][]string{
		`[{name: a, allocatedResourcesStatus: [{name: example.com/gpu, resources: [{resourceID: x, health: Healthy}, {resourceID: y, health: Unknown}]}]}]`: nil,
		`[{name: a, allocatedResourcesStatus: [{name: "claim:c"}]}]`:                                                                                        nil,
		`[{name: a, allocatedResourcesStatus: [{name: "claim:d/r"}]}]`:                                                                                      nil,
		`[{name: a, allocatedResourcesStatus: [{name: "claim:e/q"}]}]`:                                                                                      nil,
		`[{name: gone, allocatedResourcesStatus: [{name: whatever}]}]`:                                                                                      nil,
		`[{name: a, allocatedResourcesStatus: [{name: "claim:d"}]}]`:                                                                                        {name + `"claim:d"` + claims},
		`[{name: a, allocatedResourcesStatus: [{name: "claim:e/r"}]}]`:                                                                                      {name + `"claim:e/r"` + claims},
		`[{name: a, allocatedResourcesStatus: [{name: cpu}]}]`:                                                                                              {name + `"cpu": must match one of the container's resource requests`},
		`[{name: gone, allocatedResourcesStatus: [{resources: [{health: Ill, message: ""}, {health: Healthy, message: ` + strings.Repeat("x", 1025) + `}]}]}]`: {
			at + `resources[0].health: Unsupported value: "Ill": supported values: "Healthy", "Unhealthy", "Unknown"`,
			at + `resources[0].message: Required value: must be non-empty if specified`,
			at + `resources[1].message: Too long: may not be more than 1024 bytes`,
			at + `resources[1].resourceID: Duplicate value: ""`,
		},
	} {
		pod := readPod(t, spec+"  containerStatuses: "+status)
		if diff := cmp.Diff(want, kindstest.Messages(validatePodStatus(pod, readPod(t, spec)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
}
