package node

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func runtimeClasses() resource.Kind[*nodev1.RuntimeClass] {
	return resource.Kind[*nodev1.RuntimeClass]{
		GroupVersionKind:       nodev1.SchemeGroupVersion.WithKind("RuntimeClass"),
		Plural:                 "runtimeclasses",
		ClusterScoped:          true,
		New:                    func() *nodev1.RuntimeClass { return &nodev1.RuntimeClass{} },
		NewList:                func() runtime.Object { return &nodev1.RuntimeClassList{} },
		Default:                defaultRuntimeClass,
		Validate:               validateRuntimeClass,
		ValidateUpdate:         validateRuntimeClassUpdate,
		Warnings:               runtimeClassWarnings,
		AllowCreateOnUpdate:    true,
		RequireResourceVersion: true,
		Columns: []resource.Column[*nodev1.RuntimeClass]{
			column.Name[*nodev1.RuntimeClass](),
			column.Text(
				"Handler",
				nodev1.RuntimeClass{}.SwaggerDoc()["handler"],
				0,
				func(class *nodev1.RuntimeClass) string { return class.Handler },
			),
			column.Age[*nodev1.RuntimeClass](),
		},
	}
}

func defaultRuntimeClass(class *nodev1.RuntimeClass) {
	if class.Overhead != nil {
		rule.RoundUp(class.Overhead.PodFixed)
	}
}

func runtimeClassWarnings(class *nodev1.RuntimeClass) []string {
	if class.Scheduling == nil {
		return nil
	}
	var warnings []string
	for _, label := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		if msg, deprecated := podwarnings.DeprecatedNodeLabel(label); deprecated {
			warnings = append(warnings, fmt.Sprintf("%s: %s", field.NewPath("scheduling", "nodeSelector"), msg))
		}
	}
	return warnings
}

func validateRuntimeClass(class *nodev1.RuntimeClass) field.ErrorList {
	var errs field.ErrorList
	if path := field.NewPath("handler"); class.Handler == "" {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, rule.Label(class.Handler, path)...)
	}
	if class.Overhead != nil {
		errs = append(errs, podspec.Resources(&corev1.ResourceRequirements{Limits: class.Overhead.PodFixed}, field.NewPath("overhead"))...)
	}
	if class.Scheduling != nil {
		errs = append(errs, validateScheduling(class.Scheduling, field.NewPath("scheduling"))...)
	}
	return errs
}

func validateScheduling(scheduling *nodev1.Scheduling, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(scheduling.NodeSelector, path.Child("nodeSelector"))
	at := path.Child("tolerations")
	errs = append(errs, podspec.Tolerations(scheduling.Tolerations, at)...)
	seen := map[corev1.Toleration]bool{}
	for i, toleration := range scheduling.Tolerations {
		key := toleration
		key.TolerationSeconds = nil
		if seen[key] {
			errs = append(errs, field.Duplicate(at.Index(i), toleration))
		}
		seen[key] = true
	}
	return errs
}

// validateRuntimeClassUpdate: pods of the class run in what the handler was.
func validateRuntimeClassUpdate(class, old *nodev1.RuntimeClass) field.ErrorList {
	return append(validateRuntimeClass(class), rule.Immutable(class.Handler, old.Handler, field.NewPath("handler"))...)
}
