package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// ephemeralFields are those of a container that a guest for looking around may have.
var ephemeralFields = sets.New(
	"Name", "Image", "Command", "Args", "WorkingDir", "EnvFrom", "Env", "VolumeMounts", "VolumeDevices", "TerminationMessagePath",
	"TerminationMessagePolicy", "ImagePullPolicy", "SecurityContext", "Stdin", "StdinOnce", "TTY",
)

// validateEphemeral judges containers that were added to look around: nothing of what
// a pod promises may depend on them.
func validateEphemeral(spec *corev1.PodSpec, volumes volumeSet, path *field.Path) field.ErrorList {
	const never = "cannot be set for an Ephemeral Container"
	var errs field.ErrorList
	lasting := sets.New[string]()
	for i := range spec.Containers {
		lasting.Insert(spec.Containers[i].Name)
	}
	for i := range spec.InitContainers {
		lasting.Insert(spec.InitContainers[i].Name)
	}
	names := lasting.Clone()
	for i := range spec.EphemeralContainers {
		guest, at := &spec.EphemeralContainers[i], path.Index(i)
		// The common part has the fields of a container in the same order; Go converts it.
		c := (*corev1.Container)(&guest.EphemeralContainerCommon)
		errs = append(errs, validateContainer(c, spec, volumes, names, at)...)
		errs = append(errs, ImageSpaces(c.Image, at.Child("image"))...)
		if target := guest.TargetContainerName; target != "" && !lasting.Has(target) {
			errs = append(errs, field.NotFound(at.Child("targetContainerName"), target))
		}
		errs = append(errs, rule.OnlyFields(guest.EphemeralContainerCommon, ephemeralFields, never, at)...)
		for j := range c.VolumeMounts {
			mount := at.Child("volumeMounts").Index(j)
			if c.VolumeMounts[j].SubPath != "" {
				errs = append(errs, field.Forbidden(mount.Child("subPath"), never))
			}
			if c.VolumeMounts[j].SubPathExpr != "" {
				errs = append(errs, field.Forbidden(mount.Child("subPathExpr"), never))
			}
		}
	}
	return errs
}
