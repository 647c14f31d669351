package volume

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateSource asks for one source, and judges those that are still mounted
// by somebody; of the old network drivers it only knows that they count as one.
func validateSource(spec *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	set := setSources(&spec.PersistentVolumeSource)
	if len(set) == 0 {
		return field.ErrorList{field.Required(path, "must specify a volume type")}
	}
	for _, name := range set[1:] {
		errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 volume type"))
	}
	at := path.Child(set[0])
	switch set[0] {
	case "hostPath":
		errs = append(errs, podspec.HostPath(spec.HostPath, at)...)
	case "nfs":
		errs = append(errs, podspec.NFS(spec.NFS, at)...)
	case "local":
		errs = append(errs, validateLocal(spec, path)...)
	case "csi":
		errs = append(errs, validateCSI(spec.CSI, at)...)
	}
	return errs
}

// setSources names the sources that are set, in the order of their fields.
func setSources(source *corev1.PersistentVolumeSource) []string {
	var set []string
	value := reflect.ValueOf(source).Elem()
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			set = append(set, name)
		}
	}
	return set
}

// validateLocal: a disk of one node is of use on that node only.
func validateLocal(spec *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	at := path.Child("local", "path")
	errs := rule.Required(spec.Local.Path, at)
	errs = append(errs, podspec.NoBacksteps(spec.Local.Path, at)...)
	if spec.NodeAffinity == nil {
		errs = append(errs, field.Required(path.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	return errs
}

func validateCSI(csi *corev1.CSIPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := validateCSIDriverName(csi.Driver, path.Child("driver"))
	errs = append(errs, rule.Required(csi.VolumeHandle, path.Child("volumeHandle"))...)
	for _, secret := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", csi.ControllerPublishSecretRef},
		{"controllerExpandSecretRef", csi.ControllerExpandSecretRef},
		{"nodePublishSecretRef", csi.NodePublishSecretRef},
		{"nodeExpandSecretRef", csi.NodeExpandSecretRef},
	} {
		if secret.ref != nil {
			errs = append(errs, validateSecretReference(secret.ref, path.Child(secret.name))...)
		}
	}
	return errs
}

func validateCSIDriverName(name string, path *field.Path) field.ErrorList {
	return append(rule.Required(name, path), rule.DriverName(name, path)...)
}

func validateSecretReference(ref *corev1.SecretReference, path *field.Path) field.ErrorList {
	errs := rule.Required(ref.Name, path.Child("name"))
	if ref.Name != "" {
		errs = append(errs, rule.Subdomain(ref.Name, path.Child("name"))...)
	}
	if ref.Namespace == "" {
		return append(errs, field.Required(path.Child("namespace"), ""))
	}
	return append(errs, rule.Label(ref.Namespace, path.Child("namespace"))...)
}
