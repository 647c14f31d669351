package core

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func replicationControllers() resource.Kind[*corev1.ReplicationController] {
	return resource.Kind[*corev1.ReplicationController]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		Plural:           "replicationcontrollers",
		ShortNames:       []string{"rc"},
		Categories:       []string{"all"},
		New:              func() *corev1.ReplicationController { return &corev1.ReplicationController{} },
		NewList:          func() runtime.Object { return &corev1.ReplicationControllerList{} },
		Default:          defaultReplicationController,
		Validate:         validateReplicationController,
		ValidateUpdate: func(rc, _ *corev1.ReplicationController) field.ErrorList {
			return validateReplicationController(rc)
		},
		ValidateStatus: validateReplicationControllerStatus,
		ChangeWarnings: workload.NamedTemplateWarnings(
			func(rc *corev1.ReplicationController) *corev1.PodTemplateSpec { return rc.Spec.Template }),
		Spec:       func(rc *corev1.ReplicationController) any { return &rc.Spec },
		Status:     func(rc *corev1.ReplicationController) any { return &rc.Status },
		Generation: true,
		// As old clients expect, who never said what should become of the pods.
		OrphanByDefault: true,
		Columns:         replicationControllerColumns(),
		Fields: func(rc *corev1.ReplicationController) fields.Set {
			return fields.Set{"status.replicas": strconv.Itoa(int(rc.Status.Replicas))}
		},
		Scale: &resource.Scale[*corev1.ReplicationController]{
			Replicas:       func(rc *corev1.ReplicationController) int32 { return ptr.Deref(rc.Spec.Replicas, 0) },
			SetReplicas:    func(rc *corev1.ReplicationController, replicas int32) { rc.Spec.Replicas = &replicas },
			StatusReplicas: func(rc *corev1.ReplicationController) int32 { return rc.Status.Replicas },
			Selector:       func(rc *corev1.ReplicationController) string { return labels.Set(rc.Spec.Selector).String() },
		},
	}
}

func defaultReplicationController(rc *corev1.ReplicationController) {
	spec := &rc.Spec
	rule.DefaultPointer(&spec.Replicas, 1)
	if spec.Template == nil {
		return
	}
	if len(spec.Selector) == 0 {
		spec.Selector = maps.Clone(spec.Template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = maps.Clone(spec.Template.Labels)
	}
	podspec.Default(&spec.Template.Spec)
}

func replicationControllerColumns() []resource.Column[*corev1.ReplicationController] {
	spec, status := corev1.ReplicationControllerSpec{}.SwaggerDoc(), corev1.ReplicationControllerStatus{}.SwaggerDoc()
	template := workload.Columns(func(rc *corev1.ReplicationController) *corev1.PodTemplateSpec {
		return ptr.To(ptr.Deref(rc.Spec.Template, corev1.PodTemplateSpec{}))
	})
	return slices.Concat([]resource.Column[*corev1.ReplicationController]{
		column.Name[*corev1.ReplicationController](),
		column.Int(
			"Desired",
			spec["replicas"],
			func(rc *corev1.ReplicationController) int64 { return int64(ptr.Deref(rc.Spec.Replicas, 0)) },
		),
		column.Int("Current", status["replicas"], func(rc *corev1.ReplicationController) int64 { return int64(rc.Status.Replicas) }),
		column.Int(
			"Ready",
			status["readyReplicas"],
			func(rc *corev1.ReplicationController) int64 { return int64(rc.Status.ReadyReplicas) },
		),
		column.Age[*corev1.ReplicationController](),
	}, template, []resource.Column[*corev1.ReplicationController]{
		column.Text(
			"Selector",
			spec["selector"],
			1,
			func(rc *corev1.ReplicationController) string { return labels.FormatLabels(rc.Spec.Selector) },
		),
	})
}

func validateReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	var errs field.ErrorList
	spec, path := &rc.Spec, field.NewPath("spec")
	rule.Nonnegative(&errs, spec.MinReadySeconds, path.Child("minReadySeconds"))
	if len(spec.Selector) == 0 {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	}
	if spec.Replicas == nil {
		errs = append(errs, field.Required(path.Child("replicas"), ""))
	}
	rule.NonnegativePointer(&errs, spec.Replicas, path.Child("replicas"))
	if spec.Template == nil {
		return append(errs, field.Required(path.Child("template"), ""))
	}
	template := path.Child("template")
	// A selector that no label can match is still a selector, and does not match the template.
	if selector := labels.Set(spec.Selector).AsSelector(); !selector.Empty() && !selector.Matches(labels.Set(spec.Template.Labels)) {
		errs = append(
			errs,
			field.Invalid(template.Child("metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"),
		)
	}
	errs = append(errs, workload.ValidatePodTemplate(spec.Template, template)...)
	return append(errs, workload.ValidateEndless(spec.Template, "ReplicationController", template)...)
}

func validateReplicationControllerStatus(rc, _ *corev1.ReplicationController) field.ErrorList {
	var errs field.ErrorList
	status, path := &rc.Status, field.NewPath("status")
	if status.ObservedGeneration < 0 {
		errs = append(
			errs,
			field.Invalid(path.Child("observedGeneration"), status.ObservedGeneration, "must be greater than or equal to 0"),
		)
	}
	for _, count := range []struct {
		name  string
		value int32
	}{
		{"replicas", status.Replicas},
		{"fullyLabeledReplicas", status.FullyLabeledReplicas},
		{"readyReplicas", status.ReadyReplicas},
		{"availableReplicas", status.AvailableReplicas},
	} {
		rule.Nonnegative(&errs, count.value, path.Child(count.name))
		rule.AtMost(&errs, count.value, status.Replicas, "status.replicas", path.Child(count.name))
	}
	rule.AtMost(&errs, status.AvailableReplicas, status.ReadyReplicas, "readyReplicas", path.Child("availableReplicas"))
	return errs
}
