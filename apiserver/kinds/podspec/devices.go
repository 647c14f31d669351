package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateDevices judges volumes that a container gets as block devices. A volume is
// either mounted or a device, and a path is one of both.
func validateDevices(c *corev1.Container, volumes volumeSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, places := sets.New[string](), sets.New[string]()
	for i, device := range c.VolumeDevices {
		at := path.Index(i)
		name, place := at.Child("name"), at.Child("devicePath")
		errs = append(errs, validateVolumeName(device.Name, volumes, name)...)
		if names.Has(device.Name) {
			errs = append(errs, field.Invalid(name, device.Name, "must be unique"))
		}
		if volume := volumes[device.Name]; volume != nil && volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil {
			errs = append(
				errs,
				field.Invalid(name, device.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"),
			)
		}
		errs = append(errs, rule.Required(device.DevicePath, place)...)
		if places.Has(device.DevicePath) {
			errs = append(errs, field.Invalid(place, device.DevicePath, "must be unique"))
		}
		if len(NoBacksteps(device.DevicePath, place)) > 0 {
			errs = append(errs, field.Invalid(place, device.DevicePath, "can not contain backsteps ('..')"))
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == device.Name }) {
			errs = append(errs, field.Invalid(name, device.Name, "must not already exist in volumeMounts"))
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == device.DevicePath }) {
			errs = append(errs, field.Invalid(place, device.DevicePath, "must not already exist as a path in volumeMounts"))
		}
		names.Insert(device.Name)
		places.Insert(device.DevicePath)
	}
	return errs
}
