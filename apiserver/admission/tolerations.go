package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// defaultEvictionDelaySeconds is how long a pod stays bound to a node that is
// gone, unless the pod says otherwise.
const defaultEvictionDelaySeconds = int64(300)

// defaultTolerationSeconds lets pods tolerate lost nodes for a while, also those
// whose tolerations an update replaced.
type defaultTolerationSeconds struct{ onWrite }

// Admit implements admission.MutationInterface.
func (defaultTolerationSeconds) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesNoExecute(pod, key) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(defaultEvictionDelaySeconds),
			})
		}
	}
	return nil
}

func toleratesNoExecute(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
