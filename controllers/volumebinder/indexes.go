package volumebinder

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

var (
	// freeByClass files volumes that refer to no claim under their class.
	freeByClass = reconcile.Index{Name: "setpoint/free-volume-class", Keys: func(o metav1.Object) []string {
		if v, ok := o.(*corev1.PersistentVolume); ok && v.Spec.ClaimRef == nil {
			return []string{volume.GetPersistentVolumeClass(v)}
		}
		return nil
	}}
	// byReference files volumes under the claim that they refer to.
	byReference = reconcile.Index{Name: "setpoint/volume-claim", Keys: func(o metav1.Object) []string {
		if v, ok := o.(*corev1.PersistentVolume); ok && v.Spec.ClaimRef != nil {
			return []string{referenceOf(v).String()}
		}
		return nil
	}}
	// unboundByClass files claims that are not bound under their class, and those that name no class under noClass too.
	unboundByClass = reconcile.Index{Name: "setpoint/unbound-claim-class", Keys: func(o metav1.Object) []string {
		claim, ok := o.(*corev1.PersistentVolumeClaim)
		if !ok || metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBindCompleted) {
			return nil
		}
		classes := []string{volume.GetPersistentVolumeClaimClass(claim)}
		if !volume.PersistentVolumeClaimHasClass(claim) {
			classes = append(classes, noClass)
		}
		return classes
	}}
	// byVolume files claims under the volume that they name.
	byVolume = reconcile.Index{Name: "setpoint/claim-volume", Keys: func(o metav1.Object) []string {
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
			return []string{claim.Spec.VolumeName}
		}
		return nil
	}}
	// byClaim files pods that have no node under the claims that they use.
	byClaim = reconcile.Index{Name: "setpoint/claim-of-unscheduled", Keys: func(o metav1.Object) []string {
		pod, ok := o.(*corev1.Pod)
		if !ok || !unscheduled(pod) {
			return nil
		}
		var keys []string
		for _, key := range claimsOf(pod) {
			keys = append(keys, key.String())
		}
		return keys
	}}
)

// noClass is no class's name.
const noClass = "/none"

// referenceOf is the key of the claim that a volume refers to.
func referenceOf(v *corev1.PersistentVolume) reconcile.Key {
	return reconcile.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name}
}

// unscheduled tells whether a pod still waits for a node.
func unscheduled(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// claimsOf are the claims that a pod uses.
func claimsOf(pod *corev1.Pod) []reconcile.Key {
	var keys []reconcile.Key
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			keys = append(keys, reconcile.Key{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			keys = append(keys, reconcile.Key{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v)})
		}
	}
	return keys
}
