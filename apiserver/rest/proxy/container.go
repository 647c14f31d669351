package proxy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// defaultContainerAnnotation names the container that logs and exec mean when
// the client names none.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// ContainerOf checks the name a client asked for, or finds the one that is meant.
func ContainerOf(pod *corev1.Pod, asked string) (string, error) {
	names := containerNames(pod)
	if asked != "" {
		if !slices.Contains(names, asked) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", asked, pod.Name))
		}
		return asked, nil
	}
	if named := pod.Annotations[defaultContainerAnnotation]; slices.Contains(names, named) {
		return named, nil
	}
	if len(pod.Spec.Containers) == 1 {
		return pod.Spec.Containers[0].Name, nil
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %v", pod.Name, names))
}

func containerNames(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}
