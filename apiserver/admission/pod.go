package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// onPodCreate is embedded by plugins that complete new pods.
type onPodCreate struct{}

// Handles implements admission.Interface.
func (onPodCreate) Handles(op admission.Operation) bool { return op == admission.Create }

// newPod returns the pod that a request creates, or nil.
func newPod(a admission.Attributes) *corev1.Pod {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}
