package embedded

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var labelsOfFilters = map[string]string{"app": "web", "tier": "front"}

func TestFilterOfSandboxes(t *testing.T) {
	item := &runtimeapi.PodSandbox{Id: "a", State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, Labels: labelsOfFilters}
	for name, c := range map[string]struct {
		by   *runtimeapi.PodSandboxFilter
		want bool
	}{
		"no filter":     {nil, true},
		"empty":         {&runtimeapi.PodSandboxFilter{}, true},
		"its id":        {&runtimeapi.PodSandboxFilter{Id: "a"}, true},
		"another id":    {&runtimeapi.PodSandboxFilter{Id: "b"}, false},
		"its state":     {&runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}, true},
		"another state": {&runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}, false},
		"a label":       {&runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"app": "web"}}, true},
		"other value":   {&runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"app": "web", "tier": "back"}}, false},
		"other label":   {&runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"zone": ""}}, false},
	} {
		if got := passesSandbox(item, c.by); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFilterOfContainers(t *testing.T) {
	item := &runtimeapi.Container{Id: "a", PodSandboxId: "s", State: runtimeapi.ContainerState_CONTAINER_EXITED, Labels: labelsOfFilters}
	for name, c := range map[string]struct {
		by   *runtimeapi.ContainerFilter
		want bool
	}{
		"no filter":       {nil, true},
		"its id":          {&runtimeapi.ContainerFilter{Id: "a"}, true},
		"another id":      {&runtimeapi.ContainerFilter{Id: "b"}, false},
		"its sandbox":     {&runtimeapi.ContainerFilter{PodSandboxId: "s"}, true},
		"another sandbox": {&runtimeapi.ContainerFilter{PodSandboxId: "t"}, false},
		"its state":       {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_EXITED}}, true},
		"another state":   {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}, false},
		"labelsOfFilters": {&runtimeapi.ContainerFilter{LabelSelector: labelsOfFilters}, true},
		"other value":     {&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"app": "db"}}, false},
	} {
		if got := passesContainer(item, c.by); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
