package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateOS judges the system that a pod names, and that it asks a Linux pod for
// nothing that only Windows has. What Windows has not is not judged: no node has it.
func validateOS(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if spec.OS == nil {
		return nil
	}
	at := path.Child("os")
	if spec.OS.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	errs := rule.OneOf(spec.OS.Name, []corev1.OSName{corev1.Linux, corev1.Windows}, at)
	if spec.OS.Name != corev1.Linux {
		return errs
	}
	const never = "windows options cannot be set for a linux pod"
	if sc := spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), never))
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			if sc := list.containers[i].SecurityContext; sc != nil && sc.WindowsOptions != nil {
				errs = append(errs, field.Forbidden(path.Child(list.name).Index(i).Child("securityContext", "windowsOptions"), never))
			}
		}
	}
	return errs
}
