package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func podTemplates() resource.Kind[*corev1.PodTemplate] {
	validate := func(t *corev1.PodTemplate) field.ErrorList {
		return workload.ValidatePodTemplate(&t.Template, field.NewPath("template"))
	}
	return resource.Kind[*corev1.PodTemplate]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PodTemplate"),
		Plural:           "podtemplates",
		New:              func() *corev1.PodTemplate { return &corev1.PodTemplate{} },
		NewList:          func() runtime.Object { return &corev1.PodTemplateList{} },
		Default:          func(t *corev1.PodTemplate) { podspec.Default(&t.Template.Spec) },
		Validate:         validate,
		ValidateUpdate:   func(t, _ *corev1.PodTemplate) field.ErrorList { return validate(t) },
		ChangeWarnings:   podTemplateWarnings,
		Spec:             func(t *corev1.PodTemplate) any { return &t.Template },
		Generation:       true,
		ReturnDeleted:    true,
		Columns:          podTemplateColumns(),
	}
}

func podTemplateWarnings(t, old *corev1.PodTemplate) []string {
	if !workload.Changed(t, old) {
		return nil
	}
	return podwarnings.Template(&t.Template, field.NewPath("template"))
}

func podTemplateColumns() []resource.Column[*corev1.PodTemplate] {
	template := workload.Columns(func(t *corev1.PodTemplate) *corev1.PodTemplateSpec { return &t.Template })
	for i := range template {
		template[i].Priority = 0
	}
	return slices.Concat(
		[]resource.Column[*corev1.PodTemplate]{column.Name[*corev1.PodTemplate]()},
		template,
		[]resource.Column[*corev1.PodTemplate]{
			column.Text(
				"Pod Labels",
				"The labels for the pod template.",
				0,
				func(t *corev1.PodTemplate) string { return labels.FormatLabels(t.Template.Labels) },
			),
		},
	)
}
