package podwarnings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/internal/podfields"
)

// warningsMax is how many warnings are told of a pod, of each kind and in all: an answer takes 4,096 characters of them. comparedMax is
// with how many others an entry of a list is compared, so that a long list costs no more than its length.
const (
	warningsMax = 64
	comparedMax = 64
)

// Template are the warnings of a template that stands at a path, warningsMax at most.
func Template(template *corev1.PodTemplateSpec, at *field.Path) []string {
	return some(append(of(&template.Spec, &template.ObjectMeta, at, templateAppArmor), unhonoured(&template.Spec, at)...))
}

// Pod are those of a new pod, warningsMax at most.
func Pod(pod *corev1.Pod) []string {
	return some(append(of(&pod.Spec, &pod.ObjectMeta, nil, nil), unhonoured(&pod.Spec, nil)...))
}

func some(warnings []string) []string { return warnings[:min(len(warnings), warningsMax)] }

// finding looks at one container, findingOf makes it for those of a pod.
type (
	finding   func(c *corev1.Container, at *field.Path) []string
	findingOf func(spec *corev1.PodSpec, meta *metav1.ObjectMeta, annotations *field.Path) finding
)

// of are upstream's. A template's containers are told about their AppArmor annotations; a pod's are when these are made fields of it.
func of(spec *corev1.PodSpec, meta *metav1.ObjectMeta, at *field.Path, appArmor findingOf) []string {
	inSpec := at.Child("spec")
	annotations := at.Child("metadata", "annotations")
	warnings := placementWarnings(spec, inSpec)
	warnings = append(warnings, annotationWarnings(meta, annotations)...)
	warnings = append(warnings, volumesWarnings(spec.Volumes, inSpec.Child("volumes"))...)
	warnings = append(warnings, listWarnings(spec, inSpec)...)
	warnings = append(warnings, fractionWarnings(spec.Overhead, inSpec.Child("overhead"))...)
	warnings = append(warnings, seccompWarnings(spec.SecurityContext == nil || spec.SecurityContext.SeccompProfile == nil, meta,
		corev1.SeccompPodAnnotationKey, annotations)...)
	profiles := finding(func(*corev1.Container, *field.Path) []string { return nil })
	if appArmor != nil {
		profiles = appArmor(spec, meta, annotations)
	}
	for c, path := range containers(spec, inSpec) {
		warnings = append(warnings, seccompWarnings(c.SecurityContext == nil || c.SecurityContext.SeccompProfile == nil, meta,
			corev1.SeccompContainerAnnotationKeyPrefix+c.Name, annotations)...)
		warnings = append(warnings, profiles(c, path)...)
		warnings = append(warnings, containerWarnings(c, path)...)
	}
	warnings = append(warnings, portWarnings(spec, inSpec)...)
	warnings = append(warnings, graceWarnings(spec, inSpec)...)
	warnings = append(warnings, affinityWarnings(spec, inSpec)...)
	return append(warnings, addressWarnings(spec, inSpec)...)
}

// oldAnnotations did what fields do now.
var oldAnnotations = []struct{ key, message string }{
	{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
	{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
}

func annotationWarnings(meta *metav1.ObjectMeta, annotations *field.Path) (warnings []string) {
	for _, old := range oldAnnotations {
		if _, set := meta.Annotations[old.key]; set {
			warnings = append(warnings, fmt.Sprintf("%s: %s", annotations.Key(old.key), old.message))
		}
	}
	return warnings
}

// unhonoured are the fields that do nothing on Setpoint's own nodes.
func unhonoured(spec *corev1.PodSpec, at *field.Path) (warnings []string) {
	for _, f := range podfields.Find(spec, at.Child("spec").String(), podfields.Embedded) {
		warnings = append(warnings, f.String())
	}
	return warnings
}

func graceWarnings(spec *corev1.PodSpec, at *field.Path) []string {
	if grace := spec.TerminationGracePeriodSeconds; grace == nil || *grace >= 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: must be >= 0; negative values are invalid and will be treated as 1", at.Child("terminationGracePeriodSeconds"))}
}
