package filter

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// Sandbox reports whether a sandbox is asked for.
func Sandbox(item *runtimeapi.PodSandbox, by *runtimeapi.PodSandboxFilter) bool {
	return is(item.Id, by.GetId()) && (by.GetState() == nil || by.GetState().State == item.State) && Labels(item.Labels, by.GetLabelSelector())
}

// Container reports whether a container is asked for.
func Container(item *runtimeapi.Container, by *runtimeapi.ContainerFilter) bool {
	return is(item.Id, by.GetId()) && is(item.PodSandboxId, by.GetPodSandboxId()) &&
		(by.GetState() == nil || by.GetState().State == item.State) && Labels(item.Labels, by.GetLabelSelector())
}

func is(id, wanted string) bool { return wanted == "" || id == wanted }

// Labels reports whether a sandbox or container with these labels may be asked for.
func Labels(labels, selector map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
