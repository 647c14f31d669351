package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUnwell(t *testing.T) {
	node := func(conditions ...corev1.NodeCondition) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: conditions}}
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	lost := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "silent"}
	full := corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "KubeletHasDiskPressure", Message: "full"}
	calm := corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}
	for want, nodes := range map[string][]corev1.Node{
		"there is no node":   nil,
		"all nodes are well": {node(ready, calm)},
		"node n: Ready=Unknown NodeStatusUnknown: silent":        {node(lost, calm)},
		"node n: DiskPressure=True KubeletHasDiskPressure: full": {node(ready, full), node(ready)},
	} {
		if got := Unwell(nodes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
