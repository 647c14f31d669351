package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

func validateJobUpdate(job, old *batchv1.Job) field.ErrorList {
	spec, was, path := &job.Spec, &old.Spec, field.NewPath("spec")
	errs := validateJobSpec(spec, path)
	errs = append(errs, validateJobSelector(spec, was, path)...)
	errs = append(errs, validateCompletions(spec, was, path.Child("completions"))...)
	errs = append(errs, validation.ValidateImmutableField(spec.Selector, was.Selector, path.Child("selector"))...)
	errs = append(errs, validateTemplateUpdate(job, old, path)...)
	for _, fixed := range []struct {
		name     string
		now, old any
	}{
		{"completionMode", spec.CompletionMode, was.CompletionMode},
		{"podFailurePolicy", spec.PodFailurePolicy, was.PodFailurePolicy},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex, was.BackoffLimitPerIndex},
		{"managedBy", spec.ManagedBy, was.ManagedBy},
		{"successPolicy", spec.SuccessPolicy, was.SuccessPolicy},
	} {
		errs = append(errs, validation.ValidateImmutableField(fixed.now, fixed.old, path.Child(fixed.name))...)
	}
	return append(errs, validateHostNames(job)...)
}

// validateCompletions: an indexed job may grow or shrink, as a whole.
func validateCompletions(spec, old *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if !indexed(spec) {
		return validation.ValidateImmutableField(spec.Completions, old.Completions, path)
	}
	if spec.Completions == nil || equality.Semantic.DeepEqual(spec.Completions, old.Completions) {
		return nil
	}
	if spec.Parallelism == nil || *spec.Completions != *spec.Parallelism {
		return field.ErrorList{
			field.Invalid(path, spec.Completions, fmt.Sprintf("can only be modified in tandem with %s", path.Root().Child("parallelism"))),
		}
	}
	return nil
}

// validateTemplateUpdate: while a job is suspended and has no pods, a queue may
// decide where they will run and what they get.
func validateTemplateUpdate(job, old *batchv1.Job, path *field.Path) field.ErrorList {
	now, was := &job.Spec.Template, &old.Spec.Template
	if !dormant(old) {
		return validation.ValidateImmutableField(now, was, path.Child("template"))
	}
	was = was.DeepCopy()
	adoptScheduling(was, now)
	adoptResources(was.Spec.Containers, now.Spec.Containers)
	adoptResources(was.Spec.InitContainers, now.Spec.InitContainers)
	return validation.ValidateImmutableField(now.Spec, was.Spec, path.Child("template.spec"))
}

// dormant reports that no pod of the job exists or is being made.
func dormant(job *batchv1.Job) bool {
	stopped := job.Status.StartTime == nil || has(job, batchv1.JobSuspended)
	return rule.IsTrue(job.Spec.Suspend) && stopped && job.Status.Active == 0
}

// adoptScheduling takes over what says where pods run, so that it does not count as a difference.
func adoptScheduling(was, now *corev1.PodTemplateSpec) {
	adoptNodeAffinity(&was.Spec, &now.Spec)
	was.Annotations, was.Labels = now.Annotations, now.Labels
	was.Spec.NodeSelector, was.Spec.Tolerations, was.Spec.SchedulingGates = now.Spec.NodeSelector, now.Spec.Tolerations,
		now.Spec.SchedulingGates
}

func adoptNodeAffinity(was, now *corev1.PodSpec) {
	switch {
	case was.Affinity == nil && now.Affinity == nil:
		return
	case was.Affinity == nil:
		was.Affinity = &corev1.Affinity{NodeAffinity: now.Affinity.NodeAffinity}
	case now.Affinity == nil:
		if was.Affinity.NodeAffinity = nil; *was.Affinity == (corev1.Affinity{}) {
			was.Affinity = nil
		}
	default:
		was.Affinity.NodeAffinity = now.Affinity.NodeAffinity
	}
}

func adoptResources(was, now []corev1.Container) {
	if len(was) != len(now) {
		return
	}
	for i := range now {
		if was[i].Name == now[i].Name {
			was[i].Resources = now[i].Resources
		}
	}
}
