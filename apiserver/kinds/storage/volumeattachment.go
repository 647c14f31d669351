package storage

import (
	"math"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/volume"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	attachmentBytesMax = 256 << 10
	errorBytesMax      = 1024
)

func volumeAttachments() resource.Kind[*storagev1.VolumeAttachment] {
	return resource.Kind[*storagev1.VolumeAttachment]{
		GroupVersionKind:       storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"),
		Plural:                 "volumeattachments",
		ReturnDeleted:          true,
		ClusterScoped:          true,
		New:                    func() *storagev1.VolumeAttachment { return &storagev1.VolumeAttachment{} },
		NewList:                func() runtime.Object { return &storagev1.VolumeAttachmentList{} },
		StatusResets:           []string{"metadata", "spec"},
		PrepareStatus:          func(a, old *storagev1.VolumeAttachment) { metav1.ResetObjectMetaForStatus(a, old) },
		Validate:               validateAttachment,
		ValidateUpdate:         validateAttachmentUpdate,
		ValidateStatus:         validateAttachmentUpdate,
		Spec:                   func(a *storagev1.VolumeAttachment) any { return &a.Spec },
		Status:                 func(a *storagev1.VolumeAttachment) any { return &a.Status },
		RequireResourceVersion: true,
		Columns:                attachmentColumns(),
	}
}

func attachmentColumns() []resource.Column[*storagev1.VolumeAttachment] {
	spec := storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
	attacher := column.Text("Attacher", spec["attacher"], 0, func(a *storagev1.VolumeAttachment) string { return a.Spec.Attacher })
	attacher.Format = "name" // upstream's
	return []resource.Column[*storagev1.VolumeAttachment]{
		column.Name[*storagev1.VolumeAttachment](),
		attacher,
		column.Text(
			"PV",
			storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"],
			0,
			func(a *storagev1.VolumeAttachment) string {
				return ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
			},
		),
		column.Text("Node", spec["nodeName"], 0, func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName }),
		column.Bool(
			"Attached",
			storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"],
			func(a *storagev1.VolumeAttachment) bool { return a.Status.Attached },
		),
		column.Age[*storagev1.VolumeAttachment](),
	}
}

func validateAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateDriverName(a.Spec.Attacher, path.Child("attacher"))
	errs = append(errs, validateAttachmentSource(&a.Spec.Source, path.Child("source"))...)
	errs = append(errs, rule.Subdomain(a.Spec.NodeName, path.Child("nodeName"))...)
	status := field.NewPath("status")
	if size(a.Status.AttachmentMetadata) > attachmentBytesMax {
		errs = append(errs, field.TooLong(status.Child("attachmentMetadata"), "", attachmentBytesMax))
	}
	errs = append(errs, validateVolumeError(a.Status.AttachError, status.Child("attachError"))...)
	return append(errs, validateVolumeError(a.Status.DetachError, status.Child("detachError"))...)
}

func validateAttachmentSource(source *storagev1.VolumeAttachmentSource, path *field.Path) field.ErrorList {
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	name := source.PersistentVolumeName
	switch {
	case source.InlineVolumeSpec == nil && name == nil:
		return field.ErrorList{field.Required(path, one)}
	case source.InlineVolumeSpec != nil && name != nil:
		return field.ErrorList{field.Forbidden(path, one)}
	case name == nil:
		return volume.Inline(source.InlineVolumeSpec, path.Child("inlineVolumeSpec"))
	case *name == "":
		return field.ErrorList{field.Required(path.Child("persistentVolumeName"), "must specify non empty persistentVolumeName")}
	}
	return rule.Subdomain(*name, path.Child("persistentVolumeName"))
}

func validateVolumeError(e *storagev1.VolumeError, path *field.Path) field.ErrorList {
	if e == nil {
		return nil
	}
	var errs field.ErrorList
	if len(e.Message) > errorBytesMax {
		errs = append(errs, field.TooLong(path.Child("message"), "", errorBytesMax))
	}
	if code := e.ErrorCode; code != nil && *code < 0 {
		errs = append(errs, field.Invalid(path.Child("errorCode"), *code, utilvalidation.InclusiveRangeError(0, math.MaxInt32)))
	}
	return errs
}

func validateAttachmentUpdate(a, old *storagev1.VolumeAttachment) field.ErrorList {
	return append(validateAttachment(a), rule.Immutable(a.Spec, old.Spec, field.NewPath("spec"))...)
}
