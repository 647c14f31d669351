package replicationcontroller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// kind is what owner references name, and events.
var kind = corev1.SchemeGroupVersion.WithKind("ReplicationController")

// asSet shows a ReplicationController as a ReplicaSet, which shares its parts.
func asSet(rc *corev1.ReplicationController) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind},
		ObjectMeta: rc.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        rc.Spec.Replicas,
			MinReadySeconds: rc.Spec.MinReadySeconds,
			Selector:        &metav1.LabelSelector{MatchLabels: rc.Spec.Selector},
			Template:        ptr.Deref(rc.Spec.Template, corev1.PodTemplateSpec{}),
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas:             rc.Status.Replicas,
			FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
			ReadyReplicas:        rc.Status.ReadyReplicas,
			AvailableReplicas:    rc.Status.AvailableReplicas,
			ObservedGeneration:   rc.Status.ObservedGeneration,
			Conditions:           conditions(rc.Status.Conditions, setCondition),
		},
	}
}

// fromSet is the ReplicationController that asSet showed.
func fromSet(rs *appsv1.ReplicaSet) *corev1.ReplicationController {
	return &corev1.ReplicationController{
		ObjectMeta: rs.ObjectMeta,
		Spec: corev1.ReplicationControllerSpec{
			Replicas:        rs.Spec.Replicas,
			MinReadySeconds: rs.Spec.MinReadySeconds,
			Selector:        rs.Spec.Selector.MatchLabels,
			Template:        &rs.Spec.Template,
		},
		Status: corev1.ReplicationControllerStatus{
			Replicas:             rs.Status.Replicas,
			FullyLabeledReplicas: rs.Status.FullyLabeledReplicas,
			ReadyReplicas:        rs.Status.ReadyReplicas,
			AvailableReplicas:    rs.Status.AvailableReplicas,
			ObservedGeneration:   rs.Status.ObservedGeneration,
			Conditions:           conditions(rs.Status.Conditions, controllerCondition),
		},
	}
}

func conditions[A, B any](list []A, convert func(A) B) []B {
	var out []B
	for _, c := range list {
		out = append(out, convert(c))
	}
	return out
}

func setCondition(c corev1.ReplicationControllerCondition) appsv1.ReplicaSetCondition {
	return appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status,
		LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message}
}

func controllerCondition(c appsv1.ReplicaSetCondition) corev1.ReplicationControllerCondition {
	return corev1.ReplicationControllerCondition{Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status,
		LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message}
}
