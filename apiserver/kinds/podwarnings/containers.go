package podwarnings

import (
	"fmt"
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
)

// containers are all of a pod, with their paths.
func containers(spec *corev1.PodSpec, at *field.Path) iter.Seq2[*corev1.Container, *field.Path] {
	return func(yield func(*corev1.Container, *field.Path) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i], at.Child("initContainers").Index(i)) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i], at.Child("containers").Index(i)) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			// The common part has the fields of a container in the same order; Go converts it.
			c := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
			if !yield(c, at.Child("ephemeralContainers").Index(i)) {
				return
			}
		}
	}
}

func containerWarnings(c *corev1.Container, at *field.Path) []string {
	warnings := fractionWarnings(c.Resources.Limits, at.Child("resources", "limits"))
	warnings = append(warnings, fractionWarnings(c.Resources.Requests, at.Child("resources", "requests"))...)
	return append(warnings, envWarnings(c, at)...)
}

// seccompWarnings find an annotation that did what a field does, where that is not set.
func seccompWarnings(unset bool, meta *metav1.ObjectMeta, key string, annotations *field.Path) []string {
	if _, annotated := meta.Annotations[key]; !annotated || !unset {
		return nil
	}
	return []string{fmt.Sprintf(`%s: non-functional in v1.27+; use the "seccompProfile" field instead`, annotations.Key(key))}
}

// templateAppArmor finds annotations of containers that have no field, but for those that say what the whole pod's field says.
func templateAppArmor(spec *corev1.PodSpec, meta *metav1.ObjectMeta, annotations *field.Path) finding {
	var whole *corev1.AppArmorProfile
	if spec.SecurityContext != nil {
		whole = spec.SecurityContext.AppArmorProfile
	}
	return func(c *corev1.Container, _ *field.Path) []string {
		key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
		value, annotated := meta.Annotations[key]
		hasField := c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil
		if !annotated || hasField || whole != nil && equality.Semantic.DeepEqual(whole, podspec.AppArmorAnnotated(value)) {
			return nil
		}
		return []string{fmt.Sprintf(`%s: deprecated since v1.30; use the "appArmorProfile" field instead`, annotations.Key(key))}
	}
}

// envWarnings find variables that hide earlier ones of the same name, unless they are made of them.
func envWarnings(c *corev1.Container, at *field.Path) (warnings []string) {
	seen := sets.New[string]()
	for i, env := range c.Env {
		ref := "$(" + env.Name + ")"
		builds := env.ValueFrom == nil && env.Value != ref && strings.Contains(env.Value, ref)
		if seen.Has(env.Name) && !builds {
			warnings = append(warnings,
				fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply", at.Child("env").Index(i), env.Name))
		}
		seen.Insert(env.Name)
	}
	return warnings
}

// fractionWarnings find parts of bytes.
func fractionWarnings(amounts corev1.ResourceList, at *field.Path) (warnings []string) {
	const wholeMilli = 1000
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if value, ok := amounts[name]; ok && value.MilliValue()%wholeMilli != 0 {
			warnings = append(warnings,
				fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", at.Key(string(name)), value.String()))
		}
	}
	return warnings
}
