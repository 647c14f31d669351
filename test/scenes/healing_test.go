package scenes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// healing deletes pods and their ReplicaSet: all come back, under other names.
func healing(s *scene) {
	s.deploy("shop", 4, nil)
	s.seeDeployment("shop", "complete", complete)
	before := s.pods("shop")
	for _, pod := range before[:3] {
		if err := s.client.CoreV1().Pods(s.namespace).Delete(s.Context(), pod.Name, metav1.DeleteOptions{}); !gone(err) {
			s.Fatal(err)
		}
	}
	s.seeDeployment("shop", "complete again", complete)
	after := s.pods("shop")
	isSame := func(pod corev1.Pod) func(corev1.Pod) bool {
		return func(other corev1.Pod) bool { return other.UID == pod.UID }
	}
	for i, pod := range before {
		if kept := slices.ContainsFunc(after, isSame(pod)); kept != (i == 3) {
			s.Errorf("pod %d of those before: kept is %v", i, kept)
		}
	}
	sets := s.client.AppsV1().ReplicaSets(s.namespace)
	if err := sets.DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.Fatal(err)
	}
	s.seeDeployment("shop", "complete with a new ReplicaSet", complete)
}
