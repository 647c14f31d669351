package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// selectorWarnings finds rules about other pods that select none.
func selectorWarnings(spec *corev1.PodSpec, path *field.Path) []string {
	var warnings []string
	judge := func(selector *metav1.LabelSelector, at *field.Path) {
		if selector == nil {
			warnings = append(warnings, fmt.Sprintf("%s: a null labelSelector results in matching no pod", at.Child("labelSelector")))
		}
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, at *field.Path) {
		for i := range required {
			judge(required[i].LabelSelector, at.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))
		}
		for i := range preferred {
			judge(
				preferred[i].PodAffinityTerm.LabelSelector,
				at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm"),
			)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		judge(spec.TopologySpreadConstraints[i].LabelSelector, path.Child("topologySpreadConstraints").Index(i))
	}
	if spec.Affinity == nil {
		return warnings
	}
	if with := spec.Affinity.PodAffinity; with != nil {
		terms(
			with.RequiredDuringSchedulingIgnoredDuringExecution,
			with.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("affinity", "podAffinity"),
		)
	}
	if without := spec.Affinity.PodAntiAffinity; without != nil {
		terms(
			without.RequiredDuringSchedulingIgnoredDuringExecution,
			without.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("affinity", "podAntiAffinity"),
		)
	}
	return warnings
}

// volumeWarnings finds kinds of volumes that are gone.
func volumeWarnings(v *corev1.Volume, path *field.Path) []string {
	var warnings []string
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
			warnings = append(warnings, fmt.Sprintf("%s: %s", path.Child(gone.field), gone.text))
		}
	}
	return warnings
}

// listWarnings finds entries that strategic merge would join, and pull secrets without a name.
func listWarnings(spec *corev1.PodSpec, path *field.Path) []string {
	var warnings []string
	addresses, secrets := sets.New[string](), sets.New[string]()
	for i, alias := range spec.HostAliases {
		if addresses.Has(alias.IP) {
			warnings = append(warnings, fmt.Sprintf("%s: duplicate ip %q", path.Child("hostAliases").Index(i).Child("ip"), alias.IP))
		}
		addresses.Insert(alias.IP)
	}
	for i, secret := range spec.ImagePullSecrets {
		at := path.Child("imagePullSecrets").Index(i).Child("name")
		if secrets.Has(secret.Name) {
			warnings = append(warnings, fmt.Sprintf("%s: duplicate name %q", at, secret.Name))
		}
		if secret.Name == "" {
			warnings = append(warnings, fmt.Sprintf("%s: invalid empty name %q", at, secret.Name))
		}
		secrets.Insert(secret.Name)
	}
	return warnings
}

// fractionWarnings finds parts of bytes.
func fractionWarnings(amounts corev1.ResourceList, path *field.Path) []string {
	const wholeMilli = 1000
	var warnings []string
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if value, ok := amounts[name]; ok && value.MilliValue()%wholeMilli != 0 {
			warnings = append(
				warnings,
				fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", path.Key(string(name)), value.String()),
			)
		}
	}
	return warnings
}
