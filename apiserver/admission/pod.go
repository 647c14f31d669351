package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

var (
	podsResource       = corev1.Resource("pods")
	namespacesResource = corev1.Resource("namespaces")
	nodesResource      = corev1.Resource("nodes")
	claimsResource     = corev1.Resource("persistentvolumeclaims")
)

// onCreate is embedded by plugins that look at new objects only.
type onCreate struct{}

// Handles implements admission.Interface.
func (onCreate) Handles(op admission.Operation) bool { return op == admission.Create }

// onUpdate is embedded by plugins that look at changes only.
type onUpdate struct{}

// Handles implements admission.Interface.
func (onUpdate) Handles(op admission.Operation) bool { return op == admission.Update }

// onWrite is embedded by plugins that look at new objects and at changes.
type onWrite struct{}

// Handles implements admission.Interface.
func (onWrite) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// isMain reports whether a request is about objects of a resource themselves, not
// about a subresource of them.
func isMain(a admission.Attributes, gr schema.GroupResource) bool {
	return a.GetSubresource() == "" && a.GetResource().GroupResource() == gr
}

// podOf returns the pod that a request creates or changes, or nil.
func podOf(a admission.Attributes) *corev1.Pod {
	if !isMain(a, podsResource) {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}
