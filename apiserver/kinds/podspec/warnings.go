package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Warnings tells of what is accepted but will not do what its author hopes.
func Warnings(spec *corev1.PodSpec, path *field.Path) []string {
	var warnings []string
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		warnings = append(warnings, fmt.Sprintf("%s: must be >= 0; negative values are invalid and will be treated as 1", path.Child("terminationGracePeriodSeconds")))
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].GitRepo != nil {
			warnings = append(warnings, fmt.Sprintf("%s: deprecated in v1.11, and disabled by default in v1.33+", path.Child("volumes").Index(i).Child("gitRepo")))
		}
	}
	for i := range spec.InitContainers {
		warnings = append(warnings, envWarnings(&spec.InitContainers[i], path.Child("initContainers").Index(i))...)
	}
	for i := range spec.Containers {
		warnings = append(warnings, envWarnings(&spec.Containers[i], path.Child("containers").Index(i))...)
		warnings = append(warnings, portWarnings(&spec.Containers[i], path.Child("containers").Index(i))...)
	}
	return warnings
}

// envWarnings finds variables that hide earlier ones of the same name.
func envWarnings(c *corev1.Container, path *field.Path) []string {
	var warnings []string
	seen := sets.New[string]()
	for i, env := range c.Env {
		if seen.Has(env.Name) {
			warnings = append(warnings, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply", path.Child("env").Index(i), env.Name))
		}
		seen.Insert(env.Name)
	}
	return warnings
}

// portWarnings finds a port named twice, which strategic merge would join.
func portWarnings(c *corev1.Container, path *field.Path) []string {
	type key struct {
		port     int32
		protocol corev1.Protocol
	}
	var warnings []string
	seen := map[key]int{}
	for i, p := range c.Ports {
		k := key{p.ContainerPort, p.Protocol}
		if first, found := seen[k]; found {
			warnings = append(warnings, fmt.Sprintf("%s: duplicate port definition with %s", path.Child("ports").Index(i), path.Child("ports").Index(first)))
			continue
		}
		seen[k] = i
	}
	return warnings
}
