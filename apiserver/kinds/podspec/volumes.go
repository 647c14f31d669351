package podspec

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

const (
	fileModeMax     = 0o777
	tokenSecondsMin = 10 * 60
	tokenSecondsMax = 1 << 32
)

// volumeSet is the volumes of a pod by name.
type volumeSet map[string]*corev1.Volume

var hostPathTypes = []corev1.HostPathType{
	corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
	corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
}

// validateVolumes returns those that are as they have to be: a mount of another finds none.
func validateVolumes(volumes []corev1.Volume, path *field.Path) (volumeSet, field.ErrorList) {
	var errs field.ErrorList
	set := volumeSet{}
	for i := range volumes {
		volume, at := &volumes[i], path.Index(i)
		wrong := validateVolumeSource(&volume.VolumeSource, at)
		if volume.Name == "" {
			wrong = append(wrong, field.Required(at.Child("name"), ""))
		} else {
			wrong = append(wrong, rule.Label(volume.Name, at.Child("name"))...)
		}
		if set[volume.Name] != nil {
			wrong = append(wrong, field.Duplicate(at.Child("name"), volume.Name))
		}
		if len(wrong) == 0 {
			set[volume.Name] = volume
		}
		errs = append(errs, wrong...)
	}
	return set, errs
}

// validateClaimTemplate: only labels and annotations of its metadata reach the claim.
func validateClaimTemplate(template *corev1.PersistentVolumeClaimTemplate, path *field.Path) field.ErrorList {
	meta := path.Child("metadata")
	errs := validation.ValidateAnnotations(template.Annotations, meta.Child("annotations"))
	errs = append(errs, metav1validation.ValidateLabels(template.Labels, meta.Child("labels"))...)
	errs = append(errs, rule.OnlyFields(template.ObjectMeta, sets.New("Annotations", "Labels"), "cannot be set", meta)...)
	return append(errs, claim.Validate(&template.Spec, nil, path.Child("spec"))...)
}

func validateEmptyDir(dir *corev1.EmptyDirVolumeSource, path *field.Path) field.ErrorList {
	if dir.SizeLimit != nil && dir.SizeLimit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

// HostPath judges a path on the node.
func HostPath(host *corev1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if host.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "")}
	}
	errs := NoBacksteps(host.Path, path.Child("path"))
	return append(errs, rule.OneOf(ptr.Deref(host.Type, ""), hostPathTypes, path.Child("type"))...)
}

// NFS judges a share of a file server.
func NFS(nfs *corev1.NFSVolumeSource, at *field.Path) field.ErrorList {
	errs := append(rule.Required(nfs.Server, at.Child("server")), rule.Required(nfs.Path, at.Child("path"))...)
	if !path.IsAbs(nfs.Path) {
		errs = append(errs, field.Invalid(at.Child("path"), nfs.Path, "must be an absolute path"))
	}
	return errs
}

func validateSecretVolume(secret *corev1.SecretVolumeSource, path *field.Path) field.ErrorList {
	errs := rule.Required(secret.SecretName, path.Child("secretName"))
	errs = append(errs, validateMode(secret.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateItems(secret.Items, path.Child("items"))...)
}

func validateConfigMapVolume(cm *corev1.ConfigMapVolumeSource, path *field.Path) field.ErrorList {
	errs := rule.Required(cm.Name, path.Child("name"))
	errs = append(errs, validateMode(cm.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateItems(cm.Items, path.Child("items"))...)
}

func validateMode(mode *int32, path *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > fileModeMax) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

func validateItems(items []corev1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		at := path.Index(i)
		errs = append(errs, rule.Required(item.Key, at.Child("key"))...)
		errs = append(errs, rule.Required(item.Path, at.Child("path"))...)
		errs = append(errs, validateDescendingPath(item.Path, at.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateDownwardFiles(files []corev1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, file := range files {
		at := path.Child("items").Index(i)
		errs = append(errs, rule.Required(file.Path, at.Child("path"))...)
		errs = append(errs, validateDescendingPath(file.Path, at.Child("path"))...)
		errs = append(errs, validateMode(file.Mode, at.Child("mode"))...)
		switch {
		case file.FieldRef != nil && file.ResourceFieldRef != nil:
			errs = append(errs, field.Invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case file.FieldRef != nil:
			errs = append(errs, validateFieldRef(file.FieldRef, fileFieldPaths, at.Child("fieldRef"))...)
		case file.ResourceFieldRef != nil:
			errs = append(errs, validateResourceFieldRef(file.ResourceFieldRef, true, at.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

// validateProjected: several sources share one directory, so their paths must differ.
func validateProjected(projected *corev1.ProjectedVolumeSource, path *field.Path) field.ErrorList {
	errs := validateMode(projected.DefaultMode, path.Child("defaultMode"))
	seen := sets.New[string]()
	for i := range projected.Sources {
		source, at := &projected.Sources[i], path.Child("sources").Index(i)
		errs = append(errs, validateProjection(source, at)...)
		for _, file := range projectedPaths(source) {
			if file != "" && seen.Has(file) {
				errs = append(errs, field.Invalid(path, file, "conflicting duplicate paths"))
			}
			seen.Insert(file)
		}
	}
	return errs
}

func validateProjection(source *corev1.VolumeProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	count := 0
	if s := source.Secret; s != nil {
		count++
		errs = append(errs, rule.Required(s.Name, path.Child("secret", "name"))...)
		errs = append(errs, validateItems(s.Items, path.Child("secret", "items"))...)
	}
	if s := source.ConfigMap; s != nil {
		count++
		errs = append(errs, rule.Required(s.Name, path.Child("configMap", "name"))...)
		errs = append(errs, validateItems(s.Items, path.Child("configMap", "items"))...)
	}
	if s := source.DownwardAPI; s != nil {
		count++
		errs = append(errs, validateDownwardFiles(s.Items, path.Child("downwardAPI"))...)
	}
	if s := source.ServiceAccountToken; s != nil {
		count++
		errs = append(errs, validateTokenProjection(s, path.Child("serviceAccountToken"))...)
	}
	if source.ClusterTrustBundle != nil {
		count++
		errs = append(errs, validateTrustBundle(source.ClusterTrustBundle, path.Child("clusterTrustBundle"))...)
	}
	if source.PodCertificate != nil {
		count++
		errs = append(errs, validatePodCertificate(source.PodCertificate, path.Child("podCertificate"))...)
	}
	if count > 1 {
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type per source"))
	}
	return errs
}

func validateTokenProjection(token *corev1.ServiceAccountTokenProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seconds := ptr.Deref(token.ExpirationSeconds, 0)
	if seconds < tokenSecondsMin {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > tokenSecondsMax {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	errs = append(errs, rule.Required(token.Path, path.Child("path"))...)
	return append(errs, validateDescendingPath(token.Path, path.Child("path"))...)
}

func projectedPaths(source *corev1.VolumeProjection) []string {
	var paths []string
	if s := source.Secret; s != nil {
		paths = append(paths, itemPaths(s.Items)...)
	}
	if s := source.ConfigMap; s != nil {
		paths = append(paths, itemPaths(s.Items)...)
	}
	if s := source.DownwardAPI; s != nil {
		for _, file := range s.Items {
			paths = append(paths, file.Path)
		}
	}
	if s := source.ServiceAccountToken; s != nil {
		paths = append(paths, s.Path)
	}
	if s := source.PodCertificate; s != nil {
		paths = append(paths, certificatePaths(s)...)
	}
	return paths
}

func itemPaths(items []corev1.KeyToPath) []string {
	paths := make([]string, len(items))
	for i, item := range items {
		paths[i] = item.Path
	}
	return paths
}

// validateDescendingPath: a file stays below the directory of its volume.
func validateDescendingPath(file string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if path.IsAbs(file) {
		errs = append(errs, field.Invalid(at, file, "must be a relative path"))
	}
	return append(errs, NoBacksteps(file, at)...)
}

// NoBacksteps refuses a path that leaves where it begins.
func NoBacksteps(file string, at *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(file, "/"), "..") {
		return field.ErrorList{field.Invalid(at, file, "must not contain '..'")}
	}
	return nil
}

// validateMounts: every mount names a volume of the pod and has a place of its own.
func validateMounts(c *corev1.Container, volumes volumeSet, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	places := sets.New[string]()
	mounts := at.Child("volumeMounts")
	for i := range c.VolumeMounts {
		mount, at := &c.VolumeMounts[i], mounts.Index(i)
		errs = append(errs, validateVolumeName(mount.Name, volumes, at.Child("name"))...)
		errs = append(errs, rule.Required(mount.MountPath, at.Child("mountPath"))...)
		if places.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		places.Insert(mount.MountPath)
		if slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == mount.Name }) {
			errs = append(errs, field.Invalid(at.Child("name"), mount.Name, "must not already exist in volumeDevices"))
		}
		errs = append(errs, validateSubPath(mount, at)...)
		errs = append(errs, validatePropagation(mount.MountPropagation, c, mounts.Child("mountPropagation"))...)
		errs = append(errs, validateRecursiveReadOnly(mount, mounts.Child("recursiveReadOnly"))...)
	}
	return append(errs, validateDevices(c, volumes, at.Child("volumeDevices"))...)
}

// validateRecursiveReadOnly, as validatePropagation, reports without the mount's index, as upstream does.
func validateRecursiveReadOnly(mount *corev1.VolumeMount, path *field.Path) field.ErrorList {
	mode := ptr.Deref(mount.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled)
	modes := []corev1.RecursiveReadOnlyMode{
		corev1.RecursiveReadOnlyDisabled,
		corev1.RecursiveReadOnlyEnabled,
		corev1.RecursiveReadOnlyIfPossible,
	}
	if errs := rule.OneOf(mode, modes, path); len(errs) > 0 || mode == corev1.RecursiveReadOnlyDisabled {
		return errs
	}
	var errs field.ErrorList
	if !mount.ReadOnly {
		errs = append(errs, field.Forbidden(path, "may only be specified when readOnly is true"))
	}
	if ptr.Deref(mount.MountPropagation, corev1.MountPropagationNone) != corev1.MountPropagationNone {
		errs = append(errs, field.Forbidden(path, "may only be specified when mountPropagation is None or not specified"))
	}
	return errs
}

func validateVolumeName(name string, volumes volumeSet, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if volumes[name] == nil {
		return field.ErrorList{field.NotFound(path, name)}
	}
	return nil
}

func validateSubPath(mount *corev1.VolumeMount, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if mount.SubPath != "" {
		errs = append(errs, validateDescendingPath(mount.SubPath, path.Child("subPath"))...)
	}
	if mount.SubPathExpr != "" {
		if mount.SubPath != "" {
			errs = append(
				errs,
				field.Invalid(path.Child("subPathExpr"), mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"),
			)
		}
		errs = append(errs, validateDescendingPath(mount.SubPathExpr, path.Child("subPathExpr"))...)
	}
	return errs
}

func validatePropagation(mode *corev1.MountPropagationMode, c *corev1.Container, path *field.Path) field.ErrorList {
	if mode == nil {
		return nil
	}
	modes := []corev1.MountPropagationMode{
		corev1.MountPropagationBidirectional,
		corev1.MountPropagationHostToContainer,
		corev1.MountPropagationNone,
	}
	errs := rule.OneOf(*mode, modes, path)
	privileged := c.SecurityContext != nil && rule.IsTrue(c.SecurityContext.Privileged)
	if *mode == corev1.MountPropagationBidirectional && !privileged {
		errs = append(errs, field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))
	}
	return errs
}
