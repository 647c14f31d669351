package ephemeralvolume

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// plan says which claim a volume of a pod lacks; nil if it lacks none. found gives the claim of a name, nil if there is
// none. It is an error if the claim is not the pod's.
func plan(pod *corev1.Pod, v *corev1.Volume, found func(name string) *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
		return nil, nil
	}
	name := ephemeral.VolumeClaimName(pod, v)
	if claim := found(name); claim != nil {
		return nil, ephemeral.VolumeIsForPod(pod, claim)
	}
	template := v.Ephemeral.VolumeClaimTemplate.DeepCopy()
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name, Annotations: template.Annotations, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: template.Spec,
	}, nil
}

// claimsOf are the names of the claims of a pod's generic ephemeral volumes.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil {
			names = append(names, ephemeral.VolumeClaimName(pod, v))
		}
	}
	return names
}
