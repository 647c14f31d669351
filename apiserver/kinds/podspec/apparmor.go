package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// TakeAppArmorAnnotations gives the containers of a new pod the AppArmor profile that they name by the annotation of Kubernetes
// before 1.30, unless they have the field or the whole pod has the same profile.
func TakeAppArmorAnnotations(pod *corev1.Pod) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return
	}
	visitContainers(&pod.Spec, func(c *corev1.Container) {
		profile := annotatedAppArmor(pod, c)
		if profile == nil || appArmorOf(c) != nil {
			return
		}
		if whole := pod.Spec.SecurityContext; whole != nil && equality.Semantic.DeepEqual(whole.AppArmorProfile, profile) {
			return
		}
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.AppArmorProfile = profile
	})
}

// AppArmorWarnings tells of the annotations that a pod's containers go by, or that say nothing.
func AppArmorWarnings(pod *corev1.Pod) []string {
	var warnings []string
	visitContainers(&pod.Spec, func(c *corev1.Container) {
		key := appArmorAnnotation(c)
		if _, set := pod.Annotations[key]; !set {
			return
		}
		if profile := annotatedAppArmor(pod, c); profile == nil || equality.Semantic.DeepEqual(profile, appArmorOf(c)) {
			at := field.NewPath("metadata", "annotations").Key(key)
			warnings = append(warnings, fmt.Sprintf(`%s: deprecated since v1.30; use the "appArmorProfile" field instead`, at))
		}
	})
	return warnings
}

func appArmorAnnotation(c *corev1.Container) string {
	return corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
}

func appArmorOf(c *corev1.Container) *corev1.AppArmorProfile {
	if c.SecurityContext == nil {
		return nil
	}
	return c.SecurityContext.AppArmorProfile
}

func annotatedAppArmor(pod *corev1.Pod, c *corev1.Container) *corev1.AppArmorProfile {
	return AppArmorAnnotated(pod.Annotations[appArmorAnnotation(c)])
}

// AppArmorAnnotated is the profile that the value of an annotation names, nil if it names none.
func AppArmorAnnotated(value string) *corev1.AppArmorProfile {
	name, local := strings.CutPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case value == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case value == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case local && name != "":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: ptr.To(name)}
	}
	return nil
}
