package optional

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// extendedToleration lets pods that ask for a device onto nodes that are tainted with the device's name, so that no other pods take them.
type extendedToleration struct{ onWrite }

// Admit implements admission.MutationInterface.
func (extendedToleration) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	for _, name := range devices(&pod.Spec) {
		tolerate(pod, corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return nil
}

// devices are the extended resources that a pod asks for, by name.
func devices(spec *corev1.PodSpec) (names []string) {
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		for name := range c.Resources.Requests {
			if rule.ExtendedResource(name) {
				names = append(names, string(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tolerate adds a toleration, in place of one for the same taint.
func tolerate(pod *corev1.Pod, t corev1.Toleration) {
	replaced := false
	for i := range pod.Spec.Tolerations {
		if other := &pod.Spec.Tolerations[i]; t.MatchToleration(other) {
			if apiequality.Semantic.DeepEqual(t, *other) {
				return
			}
			*other, replaced = t, true
		}
	}
	if !replaced {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
	}
}
