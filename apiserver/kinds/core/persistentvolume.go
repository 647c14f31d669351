package core

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/storage"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/volume"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// unsetCell stands for an optional field that is not set.
const unsetCell = "<unset>"

var specPath = field.NewPath("spec")

func persistentVolumes() resource.Kind[*corev1.PersistentVolume] {
	return resource.Kind[*corev1.PersistentVolume]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PersistentVolume"),
		Plural:           "persistentvolumes",
		ShortNames:       []string{"pv"},
		ClusterScoped:    true,
		New:              func() *corev1.PersistentVolume { return &corev1.PersistentVolume{} },
		NewList:          func() runtime.Object { return &corev1.PersistentVolumeList{} },
		Default:          defaultVolume,
		PrepareCreate: func(pv *corev1.PersistentVolume) {
			pv.Status.Phase, pv.Status.LastPhaseTransitionTime = corev1.VolumePending, pv.CreationTimestamp.DeepCopy()
		},
		Parts: []resource.Part[*corev1.PersistentVolume]{
			{Name: "status", Resets: []string{"spec"}, Prepare: prepareVolumeStatus, Validate: anyVolumeStatus},
		},
		Validate:       validateVolume,
		ValidateUpdate: validateVolumeUpdate,
		Warnings:       volume.Warnings,
		Spec:           func(pv *corev1.PersistentVolume) any { return &pv.Spec },
		Status:         func(pv *corev1.PersistentVolume) any { return &pv.Status },
		ReturnDeleted:  true,
		Columns:        volumeColumns(),
		// As upstream: a mistake that clients rely on.
	}
}

func defaultVolume(pv *corev1.PersistentVolume) {
	rule.Default(&pv.Status.Phase, corev1.VolumePending)
	rule.Default(&pv.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	rule.DefaultPointer(&pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if v := pv.Spec.HostPath; v != nil {
		rule.DefaultPointer(&v.Type, corev1.HostPathUnset)
	}
	if v := pv.Spec.ISCSI; v != nil {
		rule.Default(&v.ISCSIInterface, "default")
	}
	rule.RoundUp(pv.Spec.Capacity)
}

// prepareVolumeStatus notes when the phase changed, unless the client says so.
func prepareVolumeStatus(pv, old *corev1.PersistentVolume, now time.Time) {
	pv.Spec = old.Spec
	stamp, was := &pv.Status.LastPhaseTransitionTime, old.Status.LastPhaseTransitionTime
	switch same := pv.Status.Phase == old.Status.Phase; {
	case same && *stamp == nil:
		*stamp = was
	case !same && (*stamp == nil || (*stamp).Equal(was)):
		*stamp = &metav1.Time{Time: now}
	}
}

func anyVolumeStatus(_, _ *corev1.PersistentVolume, _ time.Time) field.ErrorList { return nil }

func volumeColumns() []resource.Column[*corev1.PersistentVolume] {
	spec, status := corev1.PersistentVolumeSpec{}.SwaggerDoc(), corev1.PersistentVolumeStatus{}.SwaggerDoc()
	text := func(name, description string, cell func(*corev1.PersistentVolume) string) resource.Column[*corev1.PersistentVolume] {
		return column.Text(name, description, 0, cell)
	}
	return []resource.Column[*corev1.PersistentVolume]{
		column.Name[*corev1.PersistentVolume](),
		text("Capacity", spec["capacity"], func(pv *corev1.PersistentVolume) string { return sizeCell(pv.Spec.Capacity) }),
		text(
			"Access Modes",
			spec["accessModes"],
			func(pv *corev1.PersistentVolume) string { return storage.GetAccessModesAsString(pv.Spec.AccessModes) },
		),
		text("Reclaim Policy", spec["persistentVolumeReclaimPolicy"], func(pv *corev1.PersistentVolume) string {
			return string(pv.Spec.PersistentVolumeReclaimPolicy)
		}),
		text("Status", status["phase"], func(pv *corev1.PersistentVolume) string { return phaseCell(string(pv.Status.Phase), pv) }),
		text("Claim", spec["claimRef"], func(pv *corev1.PersistentVolume) string {
			if ref := pv.Spec.ClaimRef; ref != nil {
				return ref.Namespace + "/" + ref.Name
			}
			return ""
		}),
		text("StorageClass", "StorageClass of the pv", storage.GetPersistentVolumeClass),
		text("VolumeAttributesClass", "VolumeAttributesClass of the pv", func(pv *corev1.PersistentVolume) string {
			return ptr.Deref(pv.Spec.VolumeAttributesClassName, unsetCell)
		}),
		text("Reason", status["reason"], func(pv *corev1.PersistentVolume) string { return pv.Status.Reason }),
		column.Age[*corev1.PersistentVolume](),
		column.Text("VolumeMode", spec["volumeMode"], 1, func(pv *corev1.PersistentVolume) string {
			return string(ptr.Deref(pv.Spec.VolumeMode, unsetCell))
		}),
	}
}

func sizeCell(list corev1.ResourceList) string {
	size := list[corev1.ResourceStorage]
	return size.String()
}

func phaseCell(phase string, obj resource.Object) string {
	if obj.GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return phase
}

func validateVolume(pv *corev1.PersistentVolume) field.ErrorList {
	return append(volume.Spec(&pv.Spec, specPath), volume.AffinityValues(&pv.Spec, specPath)...)
}

// validateVolumeUpdate: where the data is never changes; a secret for growing it may
// be added. Values in the node affinity that no label has are judged where the old ones were good.
func validateVolumeUpdate(pv, old *corev1.PersistentVolume) field.ErrorList {
	errs := volume.Spec(&pv.Spec, specPath)
	if len(volume.AffinityValues(&old.Spec, specPath)) == 0 {
		errs = append(errs, volume.AffinityValues(&pv.Spec, specPath)...)
	}
	source, was := pv.Spec.PersistentVolumeSource.DeepCopy(), &old.Spec.PersistentVolumeSource
	if source.CSI != nil && was.CSI != nil && was.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = nil
	}
	if !equality.Semantic.DeepEqual(source, was) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "persistentvolumesource"),
			fmt.Sprintf("spec.persistentvolumesource is immutable after creation\n%v", resource.Diff(*was, *source))))
	}
	errs = append(errs, validation.ValidateImmutableField(pv.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	if before := old.Spec.NodeAffinity; before != nil && !equality.Semantic.DeepEqual(pv.Spec.NodeAffinity, before) {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("nodeAffinity"),
				pv.Spec.NodeAffinity,
				validation.FieldImmutableErrorMsg+", except for updating from beta label to GA",
			),
		)
	}
	if old.Spec.VolumeAttributesClassName != nil && pv.Spec.VolumeAttributesClassName == nil {
		errs = append(
			errs,
			field.Forbidden(field.NewPath("spec", "volumeAttributesClassName"), "update from non-nil value to nil is forbidden"),
		)
	}
	return errs
}
