package plugins

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// TaintToleration keeps pods off nodes whose NoSchedule and NoExecute taints they do not tolerate, and away from nodes
// whose PreferNoSchedule taints they do not tolerate.
type TaintToleration struct{}

// Name is the plugin's name.
func (TaintToleration) Name() string { return "TaintToleration" }

// Wakes: a taint was lifted.
func (TaintToleration) Wakes() plugin.Event { return plugin.NodeAdded | plugin.NodeTaints }

// Filter names the first taint that is not tolerated.
func (TaintToleration) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	tolerations := pod.Spec.Tolerations
	return func(node *plugin.Node) *plugin.Rejection {
		taint := untolerated(node.Spec.Taints, tolerations, repels)
		if taint == nil {
			return nil
		}
		return plugin.RejectForGood(
			"node(s) had untolerated taint(s)",
			fmt.Sprintf("the pod tolerated taint %s", taint.ToString()))
	}
}

// Score counts the taints that only ask to stay away.
func (TaintToleration) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	var tolerations []corev1.Toleration
	for _, t := range pod.Spec.Tolerations {
		if t.Effect == "" || t.Effect == corev1.TaintEffectPreferNoSchedule {
			tolerations = append(tolerations, t)
		}
	}
	return func(node *plugin.Node) int64 {
		var count int64
		for i := range node.Spec.Taints {
			taint := &node.Spec.Taints[i]
			if taint.Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(tolerations, taint) {
				count++
			}
		}
		return count
	}
}

// Normalize gives the fewest taints the best score.
func (TaintToleration) Normalize(scores []int64) { plugin.Normalize(scores, true) }

func repels(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// untolerated gives the first taint that counts and is not tolerated.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, counts func(*corev1.Taint) bool) *corev1.Taint {
	for i := range taints {
		if counts(&taints[i]) && !tolerates(tolerations, &taints[i]) {
			return &taints[i]
		}
	}
	return nil
}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		// The zero logger drops what the helper says about unreadable numbers; such a toleration just does not match.
		if tolerations[i].ToleratesTaint(klog.Logger{}, taint, true) {
			return true
		}
	}
	return false
}
