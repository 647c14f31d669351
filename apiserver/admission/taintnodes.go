package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// taintNodesByCondition keeps pods off a new node until somebody has judged it. The
// node controller takes the taint away when the node is ready.
type taintNodesByCondition struct{ onCreate }

// Admit implements admission.MutationInterface.
func (taintNodesByCondition) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isMain(a, nodesResource) {
		return nil
	}
	node, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }) {
		node.Spec.Taints = append(node.Spec.Taints, notReady)
	}
	return nil
}
