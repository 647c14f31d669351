package claim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Modes of volumes and of access to them, sorted as messages list them.
var (
	accessModes = []corev1.PersistentVolumeAccessMode{
		corev1.ReadOnlyMany,
		corev1.ReadWriteMany,
		corev1.ReadWriteOnce,
		corev1.ReadWriteOncePod,
	}
	volumeModes = []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}
)

// Kinds that a data source could name before any kind could be one.
const (
	claimKind     = "PersistentVolumeClaim"
	snapshotKind  = "VolumeSnapshot"
	snapshotGroup = "snapshot.storage.k8s.io"
)

// Default fills a claim: it wants a file system unless it says otherwise.
func Default(spec *corev1.PersistentVolumeClaimSpec) {
	rule.DefaultPointer(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	rule.RoundUp(spec.Resources.Limits)
	rule.RoundUp(spec.Resources.Requests)
}

// Normalize makes the two fields for a data source say the same; old is nil for a
// new claim. A source that could not be named in the older field is dropped from it.
// A source in another namespace is not supported and dropped (KEP-3294 is alpha).
func Normalize(spec, old *corev1.PersistentVolumeClaimSpec) {
	had := old != nil && (old.DataSource != nil || old.DataSourceRef != nil)
	if ref := spec.DataSourceRef; ref != nil && ptr.Deref(ref.Namespace, "") != "" && (old == nil || old.DataSourceRef == nil) {
		spec.DataSourceRef = nil
	}
	if !had && spec.DataSourceRef == nil && !classicSource(spec.DataSource) {
		spec.DataSource = nil
	}
	Mirror(spec)
}

func classicSource(source *corev1.TypedLocalObjectReference) bool {
	if source == nil {
		return false
	}
	group := ptr.Deref(source.APIGroup, "")
	return source.Kind == claimKind && group == "" || source.Kind == snapshotKind && group == snapshotGroup
}

// Mirror fills the one of the two fields that is empty from the other.
func Mirror(spec *corev1.PersistentVolumeClaimSpec) {
	source, ref := spec.DataSource, spec.DataSourceRef
	switch {
	case source != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	case source == nil && ref != nil && ptr.Deref(ref.Namespace, "") == "":
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// Validate judges a claim. What was wrong in old, nil for a new claim, and has been
// accepted by older versions may stay.
func Validate(spec, old *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	errs := AccessModes(spec.AccessModes, "at least 1 access mode is required", path.Child("accessModes"))
	if spec.Selector != nil {
		options := metav1validation.LabelSelectorValidationOptions{
			AllowInvalidLabelValueInSelector: old != nil && metav1validation.LabelSelectorHasInvalidLabelValue(old.Selector),
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, options, path.Child("selector"))...)
	}
	errs = append(errs, validateSize(spec, path.Child("resources").Key(string(corev1.ResourceStorage)))...)
	errs = append(errs, className(spec.StorageClassName, path.Child("storageClassName"))...)
	if spec.VolumeMode != nil {
		errs = append(errs, VolumeMode(*spec.VolumeMode, path.Child("volumeMode"))...)
	}
	errs = append(errs, validateSources(spec, old, path)...)
	return append(errs, className(spec.VolumeAttributesClassName, path.Child("volumeAttributesClassName"))...)
}

// AccessModes asks for at least one mode, and for ReadWriteOncePod alone; missing
// is the message when there is none.
func AccessModes(modes []corev1.PersistentVolumeAccessMode, missing string, path *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, missing)}
	}
	var errs field.ErrorList
	exclusive, shared := false, false
	for _, mode := range modes {
		errs = append(errs, rule.OneOf(mode, accessModes, path)...)
		exclusive = exclusive || mode == corev1.ReadWriteOncePod
		shared = shared || mode != corev1.ReadWriteOncePod && slices.Contains(accessModes, mode)
	}
	if exclusive && shared {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// VolumeMode asks for one of the two modes.
func VolumeMode(mode corev1.PersistentVolumeMode, path *field.Path) field.ErrorList {
	return rule.OneOf(mode, volumeModes, path)
}

func validateSize(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	size, asked := spec.Resources.Requests[corev1.ResourceStorage]
	if !asked {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.Positive(size, path)
}

func className(name *string, path *field.Path) field.ErrorList {
	if ptr.Deref(name, "") == "" {
		return nil
	}
	return rule.Subdomain(*name, path)
}

func validateSources(spec, old *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	source, ref := spec.DataSource, spec.DataSourceRef
	anyGroup := old != nil &&
		(old.DataSource != nil && old.DataSource.APIGroup != nil || old.DataSourceRef != nil && old.DataSourceRef.APIGroup != nil)
	if source != nil {
		errs = append(errs, validateSource(source, anyGroup, path.Child("dataSource"))...)
	}
	if ref == nil {
		return errs
	}
	at := path.Child("dataSourceRef")
	local := &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	errs = append(errs, validateSource(local, anyGroup, at)...)
	namespace := ptr.Deref(ref.Namespace, "")
	if namespace != "" {
		errs = append(errs, rule.Invalid(namespace, validation.ValidateNamespaceName(namespace, false), at.Child("namespace"))...)
	}
	switch {
	case source != nil && namespace != "":
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified"))
	case source != nil && !equality.Semantic.DeepEqual(source, local):
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "must match dataSourceRef"))
	}
	return errs
}

func validateSource(source *corev1.TypedLocalObjectReference, anyGroup bool, path *field.Path) field.ErrorList {
	errs := rule.Required(source.Name, path.Child("name"))
	errs = append(errs, rule.Required(source.Kind, path.Child("kind"))...)
	group := ptr.Deref(source.APIGroup, "")
	switch {
	case group == "" && source.Kind != claimKind:
		errs = append(errs, field.Invalid(path, source.Kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	case group != "" && !anyGroup:
		errs = append(errs, rule.Subdomain(group, path.Child("apiGroup"))...)
	}
	return errs
}

// Warnings tells of sizes that are no whole number of bytes.
func Warnings(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) []string {
	var warnings []string
	for _, list := range []struct {
		name      string
		resources corev1.ResourceList
	}{{"requests", spec.Resources.Requests}, {"limits", spec.Resources.Limits}} {
		if size := list.resources[corev1.ResourceStorage]; size.MilliValue()%1000 != 0 {
			at := path.Child("resources", list.name).Key(string(corev1.ResourceStorage))
			warnings = append(warnings, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", at, size.String()))
		}
	}
	return warnings
}
