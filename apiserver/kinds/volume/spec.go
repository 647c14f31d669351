package volume

import (
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

var reclaimPolicies = []corev1.PersistentVolumeReclaimPolicy{
	corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain,
}

// Spec judges a volume that is an object of its own.
func Spec(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	errs := claim.AccessModes(spec.AccessModes, "", at.Child("accessModes"))
	errs = append(errs, validateCapacity(spec.Capacity, at.Child("capacity"))...)
	errs = append(errs, rule.OneOf(spec.PersistentVolumeReclaimPolicy, reclaimPolicies, at.Child("persistentVolumeReclaimPolicy"))...)
	if spec.NodeAffinity != nil {
		required := at.Child("nodeAffinity", "required")
		if spec.NodeAffinity.Required == nil {
			errs = append(errs, field.Required(required, "must specify required node constraints"))
		} else {
			errs = append(errs, podspec.NodeSelector(spec.NodeAffinity.Required, required)...)
		}
	}
	errs = append(errs, validateParts(spec, at)...)
	if spec.StorageClassName != "" {
		errs = append(errs, rule.Subdomain(spec.StorageClassName, at.Child("storageClassName"))...)
	}
	if spec.VolumeMode != nil {
		errs = append(errs, claim.VolumeMode(*spec.VolumeMode, at.Child("volumeMode"))...)
	}
	return errs
}

// AffinityValues asks of each value in the node affinity that a label could have it. It
// is apart from Spec since such volumes may stand in the store.
func AffinityValues(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	if spec.NodeAffinity == nil || spec.NodeAffinity.Required == nil {
		return nil
	}
	return podspec.NodeSelectorValues(spec.NodeAffinity.Required, at.Child("nodeAffinity", "required"))
}

// Inline judges a volume that exists only where it is attached: a CSI driver's, without
// anything that concerns its being found, bound and given back.
func Inline(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	const inline = "in the context of inline volumes"
	var errs field.ErrorList
	for _, unfit := range []struct {
		set  bool
		name string
	}{
		{spec.ClaimRef != nil, "claimRef"},
		{len(spec.Capacity) > 0, "capacity"},
		{spec.NodeAffinity != nil, "nodeAffinity"},
		{spec.StorageClassName != "", "storageClassName"},
	} {
		if unfit.set {
			errs = append(errs, field.Forbidden(at.Child(unfit.name), "may not be specified "+inline))
		}
	}
	if spec.CSI == nil {
		errs = append(errs, field.Required(at.Child("csi"), "has to be specified "+inline))
	}
	errs = append(errs, claim.AccessModes(spec.AccessModes, "", at.Child("accessModes"))...)
	if policy := spec.PersistentVolumeReclaimPolicy; policy != "" && policy != corev1.PersistentVolumeReclaimRetain {
		errs = append(errs, field.Forbidden(at.Child("persistentVolumeReclaimPolicy"), "may only be Retain "+inline))
	}
	if mode := spec.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
		errs = append(errs, field.Forbidden(at.Child("volumeMode"), "may not specify volumeMode other than Filesystem "+inline))
	}
	return append(errs, validateParts(spec, at)...)
}

// validateParts judges what both kinds of volume have: where the data is, and its attributes.
func validateParts(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	errs := validateSource(spec, at)
	if spec.HostPath != nil && path.Clean(spec.HostPath.Path) == "/" &&
		spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(at.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
	}
	return append(errs, validateAttributesClass(spec, at)...)
}

func validateAttributesClass(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	name := spec.VolumeAttributesClassName
	if name == nil {
		return nil
	}
	var errs field.ErrorList
	if *name == "" {
		errs = append(errs, field.Required(at.Child("volumeAttributesClassName"), "an empty string is disallowed"))
	} else {
		errs = append(errs, rule.Subdomain(*name, at.Child("volumeAttributesClassName"))...)
	}
	if spec.CSI == nil {
		errs = append(errs, field.Required(at.Child("csi"), "has to be specified when using volumeAttributesClassName"))
	}
	return errs
}

func validateCapacity(capacity corev1.ResourceList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(capacity) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	if _, sized := capacity[corev1.ResourceStorage]; !sized || len(capacity) > 1 {
		errs = append(errs, field.NotSupported(at, capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		errs = append(errs, rule.BasicQuantity(capacity[name], at.Key(string(name)))...)
		errs = append(errs, rule.Positive(capacity[name], at.Key(string(name)))...)
	}
	return errs
}
