package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
)

// Warnings tell of what a volume is accepted with but will not do: kinds that are gone, old annotations, labels that nodes have no longer.
func Warnings(pv *corev1.PersistentVolume) []string {
	var warnings []string
	at := field.NewPath("spec")
	for _, old := range []struct{ key, message string }{
		{corev1.BetaStorageClassAnnotation, `deprecated since v1.8; use "storageClassName" attribute instead`},
		{corev1.MountOptionAnnotation, `deprecated since v1.31; use "mountOptions" attribute instead`},
	} {
		if _, set := pv.Annotations[old.key]; set {
			warnings = append(warnings, fmt.Sprintf("%s: %s", field.NewPath("metadata", "annotations").Key(old.key), old.message))
		}
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		warnings = append(
			warnings,
			"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.",
		)
	}
	warnings = append(warnings, affinityWarnings(pv.Spec.NodeAffinity, at)...)
	spec := &pv.Spec
	for _, old := range []struct {
		used        bool
		name, since string
	}{
		{spec.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
		{spec.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
		{spec.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
		{spec.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
		{spec.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		{spec.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+"},
	} {
		if old.used {
			warnings = append(warnings, fmt.Sprintf("%s: %s", at.Child(old.name), old.since))
		}
	}
	return warnings
}

// affinityWarnings are about labels that nodes have no longer.
func affinityWarnings(affinity *corev1.VolumeNodeAffinity, at *field.Path) (warnings []string) {
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	for i := range affinity.Required.NodeSelectorTerms {
		here := at.Child("nodeAffinity", "required", "nodeSelectorTerms").Index(i)
		warnings = append(warnings, podwarnings.NodeTerm(&affinity.Required.NodeSelectorTerms[i], false, here)...)
	}
	return warnings
}
