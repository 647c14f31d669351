package conditions

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds of conditions that several controllers read or write.
var (
	Nodes = Of(func(c *corev1.NodeCondition) (corev1.NodeConditionType, corev1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	})
	Pods = Of(func(c *corev1.PodCondition) (corev1.PodConditionType, corev1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	})
	ReplicaSets = Of(func(c *appsv1.ReplicaSetCondition) (appsv1.ReplicaSetConditionType, corev1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	})
	Jobs = Of(func(c *batchv1.JobCondition) (batchv1.JobConditionType, corev1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	})
)
