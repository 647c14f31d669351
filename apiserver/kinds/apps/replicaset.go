package apps

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func replicaSets() resource.Kind[*appsv1.ReplicaSet] {
	return resource.Kind[*appsv1.ReplicaSet]{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Plural:           "replicasets",
		ShortNames:       []string{"rs"},
		Categories:       []string{"all"},
		New:              func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
		NewList:          func() runtime.Object { return &appsv1.ReplicaSetList{} },
		Default:          defaultReplicaSet,
		Validate:         validateReplicaSet,
		ValidateUpdate:   validateReplicaSetUpdate,
		ValidateStatus:   func(rs, _ *appsv1.ReplicaSet) field.ErrorList { return validateReplicaSetStatus(&rs.Status) },
		ChangeWarnings: workload.NamedTemplateWarnings(
			func(rs *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &rs.Spec.Template }),
		Spec:       func(rs *appsv1.ReplicaSet) any { return &rs.Spec },
		Status:     func(rs *appsv1.ReplicaSet) any { return &rs.Status },
		Generation: true,
		Bookmark:   func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = new(int32) },
		Columns:    replicaSetColumns(),
		Scale: &resource.Scale[*appsv1.ReplicaSet]{
			Replicas:       func(rs *appsv1.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 0) },
			SetReplicas:    func(rs *appsv1.ReplicaSet, replicas int32) { rs.Spec.Replicas = &replicas },
			StatusReplicas: func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas },
			Selector:       func(rs *appsv1.ReplicaSet) string { return workload.SelectorText(rs.Spec.Selector) },
		},
	}
}

func defaultReplicaSet(rs *appsv1.ReplicaSet) {
	rule.DefaultPointer(&rs.Spec.Replicas, 1)
	podspec.Default(&rs.Spec.Template.Spec)
}

func replicaSetColumns() []resource.Column[*appsv1.ReplicaSet] {
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	template := workload.Columns(func(rs *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &rs.Spec.Template })
	return slices.Concat([]resource.Column[*appsv1.ReplicaSet]{
		column.Name[*appsv1.ReplicaSet](),
		column.Int("Desired", spec["replicas"], func(rs *appsv1.ReplicaSet) int64 { return int64(ptr.Deref(rs.Spec.Replicas, 0)) }),
		column.Int("Current", status["replicas"], func(rs *appsv1.ReplicaSet) int64 { return int64(rs.Status.Replicas) }),
		column.Int("Ready", status["readyReplicas"], func(rs *appsv1.ReplicaSet) int64 { return int64(rs.Status.ReadyReplicas) }),
		column.Age[*appsv1.ReplicaSet](),
	}, template, []resource.Column[*appsv1.ReplicaSet]{
		column.Text("Selector", spec["selector"], 1, func(rs *appsv1.ReplicaSet) string { return workload.SelectorCell(rs.Spec.Selector) }),
	})
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	rule.Nonnegative(&errs, ptr.Deref(rs.Spec.Replicas, 0), path.Child("replicas"))
	rule.Nonnegative(&errs, rs.Spec.MinReadySeconds, path.Child("minReadySeconds"))
	errs = append(errs, workload.ValidateSelector(rs.Spec.Selector, "replicaset", path.Child("selector"))...)
	return append(errs, workload.ValidateTemplate(&rs.Spec.Template, rs.Spec.Selector, "ReplicaSet", path.Child("template"))...)
}

func validateReplicaSetUpdate(rs, old *appsv1.ReplicaSet) field.ErrorList {
	errs := validateReplicaSet(rs)
	return append(errs, validation.ValidateImmutableField(rs.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
}

// validateReplicaSetStatus refuses counts that contradict one another.
func validateReplicaSetStatus(status *appsv1.ReplicaSetStatus) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	rule.Nonnegative(&errs, status.Replicas, path.Child("replicas"))
	rule.Nonnegative(&errs, status.FullyLabeledReplicas, path.Child("fullyLabeledReplicas"))
	rule.Nonnegative(&errs, status.ReadyReplicas, path.Child("readyReplicas"))
	rule.Nonnegative(&errs, status.AvailableReplicas, path.Child("availableReplicas"))
	rule.NonnegativePointer(&errs, status.TerminatingReplicas, path.Child("terminatingReplicas"))
	errs = append(errs, validation.ValidateNonnegativeField(status.ObservedGeneration, path.Child("observedGeneration"))...)
	rule.AtMost(&errs, status.FullyLabeledReplicas, status.Replicas, "status.replicas", path.Child("fullyLabeledReplicas"))
	rule.AtMost(&errs, status.ReadyReplicas, status.Replicas, "status.replicas", path.Child("readyReplicas"))
	rule.AtMost(&errs, status.AvailableReplicas, status.Replicas, "status.replicas", path.Child("availableReplicas"))
	rule.AtMost(&errs, status.AvailableReplicas, status.ReadyReplicas, "readyReplicas", path.Child("availableReplicas"))
	return errs
}
