package volumebinder

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// resizedFrom is upstream's annotation of a volume whose file system is still to grow: the size before.
const resizedFrom = "volume.alpha.kubernetes.io/pre-resize-capacity"

// Each function here gives the object that one write of a binding sends, or nil if it is that way already.

// inPhase is the volume in a phase, with the message that explains it.
func inPhase(v *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string) *corev1.PersistentVolume {
	if v.Status.Phase == phase {
		return nil
	}
	next := v.DeepCopy()
	next.Status.Phase, next.Status.Message = phase, message
	return next
}

// reservedFor is the volume with a reference to the claim.
func reservedFor(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	next, changed, err := volume.GetBindVolumeToClaim(v, claim)
	if err != nil || !changed {
		return nil, err
	}
	return next, nil
}

// givenBack is the volume without its claim. A reference that its creator made stays, without the uid.
func givenBack(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	next := v.DeepCopy()
	if !metav1.HasAnnotation(v.ObjectMeta, volume.AnnBoundByController) {
		next.Spec.ClaimRef.UID = ""
		return next
	}
	next.Spec.ClaimRef = nil
	delete(next.Annotations, volume.AnnBoundByController)
	if len(next.Annotations) == 0 {
		next.Annotations = nil
	}
	return next
}

// naming is the claim with the volume's name.
func naming(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	next := claim.DeepCopy()
	if next.Spec.VolumeName != v.Name {
		next.Spec.VolumeName = v.Name
		annotate(next, volume.AnnBoundByController, "yes")
	}
	if !metav1.HasAnnotation(next.ObjectMeta, volume.AnnBindCompleted) {
		annotate(next, volume.AnnBindCompleted, "yes")
	}
	if next.Spec.VolumeName == claim.Spec.VolumeName && maps.Equal(next.Annotations, claim.Annotations) {
		return nil
	}
	return next
}

func annotate(claim *corev1.PersistentVolumeClaim, name, value string) {
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, name, value)
}

// without is the claim in a phase in which it has no volume.
func without(claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	next := claim.DeepCopy()
	s := &next.Status
	s.Phase, s.AccessModes, s.Capacity, s.CurrentVolumeAttributesClassName = phase, nil, nil, nil
	return ifChanged(claim, next)
}

// having is the bound claim with what its status says of its volume. The size is taken over only when the claim becomes
// bound: later it is a resizer's.
func having(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	next := claim.DeepCopy()
	s := &next.Status
	s.AccessModes = slices.Clone(v.Spec.AccessModes)
	if s.Phase != corev1.ClaimBound {
		takeSize(s, v)
	}
	if s.Phase == corev1.ClaimPending && v.Spec.VolumeAttributesClassName != nil {
		s.CurrentVolumeAttributesClassName = new(*v.Spec.VolumeAttributesClassName)
	}
	s.Phase = corev1.ClaimBound
	return ifChanged(claim, next)
}

// takeSize takes over the volume's size, or the one that its file system still has.
func takeSize(s *corev1.PersistentVolumeClaimStatus, v *corev1.PersistentVolume) {
	if text, resized := v.Annotations[resizedFrom]; resized {
		size, err := resource.ParseQuantity(text)
		if err != nil {
			size = v.Spec.Capacity[corev1.ResourceStorage]
		}
		if s.Capacity == nil {
			s.Capacity = corev1.ResourceList{}
		}
		s.Capacity[corev1.ResourceStorage] = size
		return
	}
	size, has := v.Spec.Capacity[corev1.ResourceStorage], s.Capacity[corev1.ResourceStorage]
	if _, ok := s.Capacity[corev1.ResourceStorage]; !ok || size.Cmp(has) != 0 {
		s.Capacity = v.Spec.Capacity.DeepCopy()
	}
}

func ifChanged(claim, next *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	if equality.Semantic.DeepEqual(claim.Status, next.Status) {
		return nil
	}
	return next
}
