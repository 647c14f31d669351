package embedded

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// passesSandbox reports whether a CRI list asks for a sandbox. An empty filter, and every empty field of one, lets everything pass.
func passesSandbox(item *runtimeapi.PodSandbox, by *runtimeapi.PodSandboxFilter) bool {
	return isAsked(item.Id, by.GetId()) && (by.GetState() == nil || by.GetState().State == item.State) &&
		passesLabels(item.Labels, by.GetLabelSelector())
}

// passesContainer reports whether a container is asked for.
func passesContainer(item *runtimeapi.Container, by *runtimeapi.ContainerFilter) bool {
	return isAsked(item.Id, by.GetId()) && isAsked(item.PodSandboxId, by.GetPodSandboxId()) &&
		(by.GetState() == nil || by.GetState().State == item.State) && passesLabels(item.Labels, by.GetLabelSelector())
}

func isAsked(id, wanted string) bool { return wanted == "" || id == wanted }

// passesLabels reports whether a sandbox or container with these labels may be asked for.
func passesLabels(labels, selector map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
