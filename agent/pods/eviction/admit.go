package eviction

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/qos"
)

// Admit says why a pod must not start on a node under these pressures, in upstream's words; "" if it may. Pressure of memory
// alone keeps away only pods that request nothing and do not tolerate it, any other pressure all pods but critical ones.
func Admit(pod *corev1.Pod, pressures []corev1.NodeConditionType) string {
	if len(pressures) == 0 || critical(pod) {
		return ""
	}
	memoryOnly := len(pressures) == 1 && pressures[0] == corev1.NodeMemoryPressure
	if memoryOnly && (qos.GetPodQOS(pod) != corev1.PodQOSBestEffort || toleratesMemoryPressure(pod)) {
		return ""
	}
	return fmt.Sprintf("The node had condition: %v. ", pressures)
}

func toleratesMemoryPressure(pod *corev1.Pod) bool {
	taint := &corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Logger{}, taint, true)
	})
}
