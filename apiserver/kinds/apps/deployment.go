package apps

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	defaultHistoryLimit            = 10
	defaultProgressDeadlineSeconds = 600
)

func deployments() resource.Kind[*appsv1.Deployment] {
	return resource.Kind[*appsv1.Deployment]{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Plural:           "deployments",
		ShortNames:       []string{"deploy"},
		Categories:       []string{"all"},
		New:              func() *appsv1.Deployment { return &appsv1.Deployment{} },
		NewList:          func() runtime.Object { return &appsv1.DeploymentList{} },
		Default:          defaultDeployment,
		PrepareUpdate:    prepareDeploymentUpdate,
		StatusResets:     []string{"spec", "metadata.labels"},
		PrepareStatus:    func(d, old *appsv1.Deployment) { d.Labels = old.Labels },
		Validate:         validateDeployment,
		ValidateUpdate:   validateDeploymentUpdate,
		ValidateStatus:   validateDeploymentStatus,
		ChangeWarnings: workload.NamedTemplateWarnings(
			func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template }),
		Spec:       func(d *appsv1.Deployment) any { return &d.Spec },
		Status:     func(d *appsv1.Deployment) any { return &d.Status },
		Generation: true,
		Bookmark:   func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) },
		Columns:    deploymentColumns(),
		Scale: &resource.Scale[*appsv1.Deployment]{
			Replicas:       func(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 0) },
			SetReplicas:    func(d *appsv1.Deployment, replicas int32) { d.Spec.Replicas = &replicas },
			StatusReplicas: func(d *appsv1.Deployment) int32 { return d.Status.Replicas },
			Selector:       func(d *appsv1.Deployment) string { return workload.SelectorText(d.Spec.Selector) },
		},
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	spec := &d.Spec
	rule.DefaultPointer(&spec.Replicas, 1)
	rule.Default(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		rule.DefaultPointer(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		rule.DefaultPointer(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		rule.DefaultPointer(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	rule.DefaultPointer(&spec.RevisionHistoryLimit, defaultHistoryLimit)
	rule.DefaultPointer(&spec.ProgressDeadlineSeconds, defaultProgressDeadlineSeconds)
	podspec.Default(&spec.Template.Spec)
}

// prepareDeploymentUpdate counts a change of annotations as a change of the spec:
// the controller copies them to ReplicaSets, and its observedGeneration tells when
// it has done so.
func prepareDeploymentUpdate(d, old *appsv1.Deployment) {
	if !equality.Semantic.DeepEqual(d.Annotations, old.Annotations) {
		d.Generation = old.Generation + 1
	}
}

func deploymentColumns() []resource.Column[*appsv1.Deployment] {
	spec, status := appsv1.DeploymentSpec{}.SwaggerDoc(), appsv1.DeploymentStatus{}.SwaggerDoc()
	template := workload.Columns(func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template })
	return slices.Concat([]resource.Column[*appsv1.Deployment]{
		column.Name[*appsv1.Deployment](),
		column.Text("Ready", "Number of the pod with ready state", 0, func(d *appsv1.Deployment) string {
			return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, 0))
		}),
		// Upstream calls these two columns strings though the cells are numbers.
		countColumn("Up-to-date", status["updatedReplicas"], func(d *appsv1.Deployment) int64 { return int64(d.Status.UpdatedReplicas) }),
		countColumn(
			"Available",
			status["availableReplicas"],
			func(d *appsv1.Deployment) int64 { return int64(d.Status.AvailableReplicas) },
		),
		column.Age[*appsv1.Deployment](),
	}, template, []resource.Column[*appsv1.Deployment]{
		column.Text("Selector", spec["selector"], 1, func(d *appsv1.Deployment) string { return workload.SelectorCell(d.Spec.Selector) }),
	})
}

func countColumn(name, description string, cell func(*appsv1.Deployment) int64) resource.Column[*appsv1.Deployment] {
	count := column.Int(name, description, cell)
	count.Type = "string"
	return count
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	var errs field.ErrorList
	spec, path := &d.Spec, field.NewPath("spec")
	rule.Nonnegative(&errs, ptr.Deref(spec.Replicas, 0), path.Child("replicas"))
	errs = append(errs, workload.ValidateSelector(spec.Selector, "deployment", path.Child("selector"))...)
	errs = append(errs, workload.ValidateTemplate(&spec.Template, spec.Selector, "ReplicaSet", path.Child("template"))...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy, path.Child("strategy"))...)
	rule.Nonnegative(&errs, spec.MinReadySeconds, path.Child("minReadySeconds"))
	if limit := spec.RevisionHistoryLimit; limit != nil {
		rule.Nonnegative(&errs, *limit, path.Child("revisionHistoryLimit"))
	}
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		rule.Nonnegative(&errs, *deadline, path.Child("progressDeadlineSeconds"))
		if *deadline <= spec.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateDeploymentStrategy(strategy *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	switch strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if strategy.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		if strategy.RollingUpdate == nil {
			return field.ErrorList{field.Required(path.Child("rollingUpdate"), "this should be defaulted and never be nil")}
		}
		return validateRollingUpdate(strategy.RollingUpdate, path.Child("rollingUpdate"))
	}
	return field.ErrorList{field.NotSupported(path.Child("type"), strategy.Type, []appsv1.DeploymentStrategyType{
		appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
	})}
}

// validateRollingUpdate: a rollout that may neither exceed nor fall below the
// wanted number would never move.
func validateRollingUpdate(rolling *appsv1.RollingUpdateDeployment, path *field.Path) field.ErrorList {
	unavailable, surge := ptr.Deref(rolling.MaxUnavailable, intstr.IntOrString{}), ptr.Deref(rolling.MaxSurge, intstr.IntOrString{})
	errs := workload.ValidateIntOrPercent(unavailable, path.Child("maxUnavailable"))
	errs = append(errs, workload.ValidateIntOrPercent(surge, path.Child("maxSurge"))...)
	if workload.Amount(unavailable) == 0 && workload.Amount(surge) == 0 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, workload.ValidatePercentMax(unavailable, path.Child("maxUnavailable"))...)
}

func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	errs := validateDeployment(d)
	return append(errs, validation.ValidateImmutableField(d.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
}

func validateDeploymentStatus(d, old *appsv1.Deployment) field.ErrorList {
	var errs field.ErrorList
	status, path := &d.Status, field.NewPath("status")
	errs = append(errs, validation.ValidateNonnegativeField(status.ObservedGeneration, path.Child("observedGeneration"))...)
	rule.Nonnegative(&errs, status.Replicas, path.Child("replicas"))
	rule.Nonnegative(&errs, status.UpdatedReplicas, path.Child("updatedReplicas"))
	rule.Nonnegative(&errs, status.ReadyReplicas, path.Child("readyReplicas"))
	rule.Nonnegative(&errs, status.AvailableReplicas, path.Child("availableReplicas"))
	rule.Nonnegative(&errs, status.UnavailableReplicas, path.Child("unavailableReplicas"))
	rule.NonnegativePointer(&errs, status.TerminatingReplicas, path.Child("terminatingReplicas"))
	rule.AtMost(&errs, status.UpdatedReplicas, status.Replicas, "status.replicas", path.Child("updatedReplicas"))
	rule.AtMost(&errs, status.ReadyReplicas, status.Replicas, "status.replicas", path.Child("readyReplicas"))
	rule.AtMost(&errs, status.AvailableReplicas, status.Replicas, "status.replicas", path.Child("availableReplicas"))
	rule.AtMost(&errs, status.AvailableReplicas, status.ReadyReplicas, "readyReplicas", path.Child("availableReplicas"))
	return append(errs, workload.ValidateCollisionCount(status.CollisionCount, old.Status.CollisionCount, path.Child("collisionCount"))...)
}
