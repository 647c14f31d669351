package podwarnings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
)

func volumesWarnings(volumes []corev1.Volume, at *field.Path) (warnings []string) {
	for i := range volumes {
		warnings = append(warnings, volumeWarnings(&volumes[i], at.Index(i))...)
	}
	for i := range volumes {
		if len(warnings) >= warningsMax {
			break
		}
		warnings = append(warnings, overlapWarnings(&volumes[i])...)
	}
	return warnings
}

// volumeWarnings find kinds of volumes that are gone, and sizes of claims that are no whole number of bytes.
func volumeWarnings(v *corev1.Volume, at *field.Path) (warnings []string) {
	for _, gone := range []struct {
		set         bool
		field, text string
	}{
		{v.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
		{v.GitRepo != nil, "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
		{v.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
		{v.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+"},
		{v.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
		{v.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
		{v.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		{v.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
		{v.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+"},
	} {
		if gone.set {
			warnings = append(warnings, fmt.Sprintf("%s: %s", at.Child(gone.field), gone.text))
		}
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		here := at.Child("ephemeral", "volumeClaimTemplate", "spec")
		warnings = append(warnings, claim.Warnings(&v.Ephemeral.VolumeClaimTemplate.Spec, here)...)
	}
	return warnings
}
