package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/internal/podfields"
)

// Warnings tells of what is accepted but will not do what its author hopes: upstream's warnings, and the fields that
// Setpoint's own agent does not honour.
func Warnings(spec *corev1.PodSpec, path *field.Path) []string {
	var warnings []string
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		warnings = append(
			warnings,
			fmt.Sprintf(
				"%s: must be >= 0; negative values are invalid and will be treated as 1",
				path.Child("terminationGracePeriodSeconds"),
			),
		)
	}
	warnings = append(warnings, selectorWarnings(spec, path)...)
	for i := range spec.Volumes {
		warnings = append(warnings, volumeWarnings(&spec.Volumes[i], path.Child("volumes").Index(i))...)
	}
	warnings = append(warnings, listWarnings(spec, path)...)
	warnings = append(warnings, fractionWarnings(spec.Overhead, path.Child("overhead"))...)
	for _, f := range podfields.Find(spec, path.String(), podfields.Embedded) {
		warnings = append(warnings, f.String())
	}
	for i := range spec.InitContainers {
		warnings = append(warnings, containerWarnings(&spec.InitContainers[i], path.Child("initContainers").Index(i))...)
	}
	for i := range spec.Containers {
		warnings = append(warnings, containerWarnings(&spec.Containers[i], path.Child("containers").Index(i))...)
		warnings = append(warnings, portWarnings(&spec.Containers[i], path.Child("containers").Index(i))...)
	}
	return warnings
}

func containerWarnings(c *corev1.Container, path *field.Path) []string {
	resources := path.Child("resources")
	warnings := fractionWarnings(c.Resources.Limits, resources.Child("limits"))
	warnings = append(warnings, fractionWarnings(c.Resources.Requests, resources.Child("requests"))...)
	return append(warnings, envWarnings(c, path)...)
}

// envWarnings finds variables that hide earlier ones of the same name, unless they are
// made of them.
func envWarnings(c *corev1.Container, path *field.Path) []string {
	var warnings []string
	seen := sets.New[string]()
	for i, env := range c.Env {
		ref := "$(" + env.Name + ")"
		builds := env.ValueFrom == nil && env.Value != ref && strings.Contains(env.Value, ref)
		if seen.Has(env.Name) && !builds {
			warnings = append(
				warnings,
				fmt.Sprintf(
					"%s: hides previous definition of %q, which may be dropped when using apply",
					path.Child("env").Index(i),
					env.Name,
				),
			)
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
			warnings = append(
				warnings,
				fmt.Sprintf("%s: duplicate port definition with %s", path.Child("ports").Index(i), path.Child("ports").Index(first)),
			)
			continue
		}
		seen[k] = i
	}
	return warnings
}
