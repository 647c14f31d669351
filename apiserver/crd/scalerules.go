package crd

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateScale judges the values that the scale subresource shows.
func (r rules) validateScale(u *unstructured.Unstructured) field.ErrorList {
	if r.scale == nil {
		return nil
	}
	return append(validateReplicas(u, r.scale.SpecReplicasPath), r.validateScaleStatus(u)...)
}

func (r rules) validateScaleStatus(u *unstructured.Unstructured) field.ErrorList {
	if r.scale == nil {
		return nil
	}
	errs := validateReplicas(u, r.scale.StatusReplicasPath)
	if path := r.scale.LabelSelectorPath; path != nil {
		if text, _, err := unstructured.NestedString(u.Object, fieldNames(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), text, err.Error()))
		}
	}
	return errs
}

func validateReplicas(u *unstructured.Unstructured, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(u.Object, fieldNames(path)...)
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case replicas < 0:
		why = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		why = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), replicas, why)}
}

// standardFinalizers need no domain.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}

// warnings are about finalizers whose names may meet others.
func (r rules) warnings(u *unstructured.Unstructured) []string {
	var all []string
	path := field.NewPath("metadata", "finalizers")
	finalizers := slices.Clone(u.GetFinalizers())
	slices.Sort(finalizers)
	for _, name := range slices.Compact(finalizers) {
		for _, message := range utilvalidation.IsQualifiedName(name) {
			all = append(all, fmt.Sprintf("%s: %q: %s", path, name, message))
		}
		switch {
		case strings.Contains(name, "/") || slices.Contains(standardFinalizers, name):
		case strings.Contains(name, "."):
			all = append(
				all,
				fmt.Sprintf(
					"%s: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers",
					path,
					name,
				),
			)
		default:
			all = append(
				all,
				fmt.Sprintf(
					"%s: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers",
					path,
					name,
				),
			)
		}
	}
	return all
}
