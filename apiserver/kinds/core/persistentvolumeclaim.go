package core

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/storage"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

var resizeStatuses = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizePending,
}

func persistentVolumeClaims() resource.Kind[*corev1.PersistentVolumeClaim] {
	return resource.Kind[*corev1.PersistentVolumeClaim]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		Plural:           "persistentvolumeclaims",
		ShortNames:       []string{"pvc"},
		New:              func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} },
		NewList:          func() runtime.Object { return &corev1.PersistentVolumeClaimList{} },
		Default: func(pvc *corev1.PersistentVolumeClaim) {
			rule.Default(&pvc.Status.Phase, corev1.ClaimPending)
			rule.RoundUp(pvc.Status.Capacity)
			rule.RoundUp(pvc.Status.AllocatedResources)
			claim.Default(&pvc.Spec)
		},
		PrepareCreate: func(pvc *corev1.PersistentVolumeClaim) {
			pvc.Status.Phase = corev1.ClaimPending
			claim.Normalize(&pvc.Spec, nil)
		},
		PrepareUpdate: func(pvc, old *corev1.PersistentVolumeClaim) { claim.Normalize(&pvc.Spec, &old.Spec) },
		Validate: func(pvc *corev1.PersistentVolumeClaim) field.ErrorList {
			return claim.Validate(&pvc.Spec, nil, field.NewPath("spec"))
		},
		ValidateUpdate: validateClaimUpdate,
		ValidateStatus: validateClaimStatus,
		Warnings:       claimWarnings,
		Spec:           func(pvc *corev1.PersistentVolumeClaim) any { return &pvc.Spec },
		Status:         func(pvc *corev1.PersistentVolumeClaim) any { return &pvc.Status },
		ReturnDeleted:  true,
		Columns:        claimColumns(),
		// As upstream: a mistake that clients rely on.
	}
}

func claimColumns() []resource.Column[*corev1.PersistentVolumeClaim] {
	spec, status := corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	text := func(name, description string, cell func(*corev1.PersistentVolumeClaim) string) resource.Column[*corev1.PersistentVolumeClaim] {
		return column.Text(name, description, 0, cell)
	}
	// What the claim got is known once it has a volume.
	bound := func(cell func(*corev1.PersistentVolumeClaim) string) func(*corev1.PersistentVolumeClaim) string {
		return func(pvc *corev1.PersistentVolumeClaim) string {
			if pvc.Spec.VolumeName == "" {
				return ""
			}
			return cell(pvc)
		}
	}
	return []resource.Column[*corev1.PersistentVolumeClaim]{
		column.Name[*corev1.PersistentVolumeClaim](),
		text("Status", status["phase"], func(pvc *corev1.PersistentVolumeClaim) string { return phaseCell(string(pvc.Status.Phase), pvc) }),
		text("Volume", spec["volumeName"], func(pvc *corev1.PersistentVolumeClaim) string { return pvc.Spec.VolumeName }),
		text(
			"Capacity",
			status["capacity"],
			bound(func(pvc *corev1.PersistentVolumeClaim) string { return sizeCell(pvc.Status.Capacity) }),
		),
		text("Access Modes", status["accessModes"], bound(func(pvc *corev1.PersistentVolumeClaim) string {
			return storage.GetAccessModesAsString(pvc.Status.AccessModes)
		})),
		text("StorageClass", "StorageClass of the pvc", storage.GetPersistentVolumeClaimClass),
		text("VolumeAttributesClass", "VolumeAttributesClass of the pvc", func(pvc *corev1.PersistentVolumeClaim) string {
			return ptr.Deref(pvc.Spec.VolumeAttributesClassName, unsetCell)
		}),
		column.Age[*corev1.PersistentVolumeClaim](),
		column.Text("VolumeMode", spec["volumeMode"], 1, func(pvc *corev1.PersistentVolumeClaim) string {
			return string(ptr.Deref(pvc.Spec.VolumeMode, unsetCell))
		}),
	}
}

func claimWarnings(pvc *corev1.PersistentVolumeClaim) []string {
	var warnings []string
	if _, set := pvc.Annotations[corev1.BetaStorageClassAnnotation]; set {
		warnings = append(warnings, fmt.Sprintf(`%s: deprecated since v1.8; use "storageClassName" attribute instead`,
			field.NewPath("metadata", "annotations").Key(corev1.BetaStorageClassAnnotation)))
	}
	return append(warnings, claim.Warnings(&pvc.Spec, field.NewPath("spec"))...)
}

// validateClaimUpdate: a claim stays what it was, except that its volume is named
// once, a missing class is filled in, and a bound claim may grow or change its class
// of attributes.
func validateClaimUpdate(pvc, old *corev1.PersistentVolumeClaim) field.ErrorList {
	path := field.NewPath("spec")
	errs := claim.Validate(&pvc.Spec, &old.Spec, path)
	now, was := pvc.DeepCopy(), old.DeepCopy()
	claim.Mirror(&was.Spec)
	if was.Spec.VolumeName == "" {
		was.Spec.VolumeName = now.Spec.VolumeName
	}
	errs = append(errs, adoptClass(now, was)...)
	if now.Status.Phase == corev1.ClaimBound {
		if size, sized := was.Spec.Resources.Requests[corev1.ResourceStorage]; sized && now.Spec.Resources.Requests != nil {
			now.Spec.Resources.Requests[corev1.ResourceStorage] = size
		}
		now.Spec.VolumeAttributesClassName = was.Spec.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(now.Spec, was.Spec) {
		errs = append(
			errs,
			field.Forbidden(
				path,
				fmt.Sprintf(
					"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n%v",
					resource.Diff(was.Spec, now.Spec),
				),
			),
		)
	}
	errs = append(errs, validateShrinking(pvc, old, path.Child("resources", "requests", "storage"))...)
	errs = append(errs, validation.ValidateImmutableField(pvc.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	return append(errs, validateClassRemoval(pvc, old, path.Child("volumeAttributesClassName"))...)
}

// adoptClass accepts that a claim without a class gets one: that of the old
// annotation, or any if there was none.
func adoptClass(now, was *corev1.PersistentVolumeClaim) field.ErrorList {
	annotated, hadAnnotation := was.Annotations[corev1.BetaStorageClassAnnotation]
	annotation, hasAnnotation := now.Annotations[corev1.BetaStorageClassAnnotation]
	given := was.Spec.StorageClassName == nil && now.Spec.StorageClassName != nil
	if given && (!hadAnnotation || *now.Spec.StorageClassName == annotated) {
		now.Spec.StorageClassName = nil
		if hadAnnotation && !hasAnnotation {
			return nil
		}
	}
	if annotation != annotated {
		return field.ErrorList{
			field.Invalid(
				field.NewPath("metadata", "annotations", corev1.BetaStorageClassAnnotation),
				annotation,
				validation.FieldImmutableErrorMsg,
			),
		}
	}
	return nil
}

// validateShrinking: a claim that failed to grow may ask for less again, but for more
// than it has.
func validateShrinking(pvc, old *corev1.PersistentVolumeClaim, path *field.Path) field.ErrorList {
	size, was := pvc.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(was) < 0 && size.Cmp(old.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		return field.ErrorList{field.Forbidden(path, "field can not be less than status.capacity")}
	}
	return nil
}

func validateClassRemoval(pvc, old *corev1.PersistentVolumeClaim, path *field.Path) field.ErrorList {
	name := pvc.Spec.VolumeAttributesClassName
	if old.Status.CurrentVolumeAttributesClassName == nil || ptr.Equal(name, old.Spec.VolumeAttributesClassName) {
		return nil
	}
	switch {
	case name == nil:
		return field.ErrorList{field.Forbidden(path, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")}
	case *name == "":
		return field.ErrorList{
			field.Forbidden(path, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"),
		}
	}
	return nil
}

func validateClaimStatus(pvc, _ *corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	status, path := &pvc.Status, field.NewPath("status")
	for _, name := range slices.Sorted(maps.Keys(status.Capacity)) {
		errs = append(errs, rule.BasicQuantity(status.Capacity[name], path.Child("capacity").Key(string(name)))...)
	}
	for _, name := range slices.Sorted(maps.Keys(status.AllocatedResourceStatuses)) {
		at := path.Child("allocatedResourceStatuses")
		errs = append(errs, validateClaimResource(name, at)...)
		if !slices.Contains(resizeStatuses, status.AllocatedResourceStatuses[name]) {
			errs = append(errs, field.NotSupported(at, name, resizeStatuses))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(status.AllocatedResources)) {
		at := path.Child("allocatedResources")
		bad := validateClaimResource(name, at)
		if len(bad) == 0 {
			bad = rule.BasicQuantity(status.AllocatedResources[name], at.Key(string(name)))
		}
		errs = append(errs, bad...)
	}
	return errs
}

// validateClaimResource: of what Kubernetes names itself, a claim has storage only.
func validateClaimResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, rule.QualifiedName(string(name), path)...)
	if len(errs) == 0 && rule.NativeResource(name) && name != corev1.ResourceStorage {
		errs = append(errs, field.NotSupported(path, string(name), []corev1.ResourceName{corev1.ResourceStorage}))
	}
	return errs
}
