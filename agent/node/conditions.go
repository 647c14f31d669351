package node

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are the four this package owns, in upstream's order.
func (k *keeper) conditions(ctx context.Context) []corev1.NodeCondition {
	var now []corev1.NodeConditionType
	if k.Pressure != nil {
		now = k.Pressure()
	}
	has := func(t corev1.NodeConditionType) bool { return slices.Contains(now, t) }
	return []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, has(corev1.NodeMemoryPressure), "KubeletHasInsufficientMemory", "kubelet has insufficient memory available",
			"KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		pressure(corev1.NodeDiskPressure, has(corev1.NodeDiskPressure), "KubeletHasDiskPressure", "kubelet has disk pressure",
			"KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		pressure(corev1.NodePIDPressure, has(corev1.NodePIDPressure), "KubeletHasInsufficientPID", "kubelet has insufficient PID available",
			"KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		k.ready(ctx),
	}
}

func pressure(t corev1.NodeConditionType, bad bool, badReason, badText, goodReason, goodText string) corev1.NodeCondition {
	if bad {
		return corev1.NodeCondition{Type: t, Status: corev1.ConditionTrue, Reason: badReason, Message: badText}
	}
	return corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: goodReason, Message: goodText}
}

func (k *keeper) ready(ctx context.Context) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if k.Ready == nil {
		return c
	}
	if err := k.Ready(ctx); err != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "KubeletNotReady", err.Error()
	}
	return c
}

// setCondition replaces the condition of c's type; the transition time moves
// only when the status does.
func setCondition(list []corev1.NodeCondition, c corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	c.LastHeartbeatTime = metav1.NewTime(now)
	c.LastTransitionTime = c.LastHeartbeatTime
	for i := range list {
		if list[i].Type != c.Type {
			continue
		}
		if list[i].Status == c.Status {
			c.LastTransitionTime = list[i].LastTransitionTime
		}
		list[i] = c
		return list
	}
	return append(list, c)
}
