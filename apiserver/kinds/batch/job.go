package batch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	defaultBackoffLimit = 6
	// The labels by which pods knew their job before labels had domains.
	legacyNameLabel = "job-name"
	legacyUIDLabel  = "controller-uid"
)

func jobs() resource.Kind[*batchv1.Job] {
	return resource.Kind[*batchv1.Job]{
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"),
		Plural:           "jobs",
		Categories:       []string{"all"},
		New:              func() *batchv1.Job { return &batchv1.Job{} },
		NewList:          func() runtime.Object { return &batchv1.JobList{} },
		Default:          defaultJob,
		PrepareCreate:    prepareJobCreate,
		PrepareUpdate:    func(job, old *batchv1.Job) { dropScheduling(&job.Spec, &old.Spec) },
		Validate:         validateJob,
		ValidateUpdate:   validateJobUpdate,
		ValidateStatus:   validateJobStatus,
		ChangeWarnings:   changedJobWarnings,
		Spec:             func(job *batchv1.Job) any { return &job.Spec },
		Status:           func(job *batchv1.Job) any { return &job.Status },
		Generation:       true,
		// As old clients expect, who never said what should become of the pods.
		OrphanByDefault: true,
		OrphanWarning: "child pods are preserved by default when jobs are deleted; " +
			"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		Columns: jobColumns(),
		Fields: func(job *batchv1.Job) fields.Set {
			return fields.Set{"status.successful": strconv.Itoa(int(job.Status.Succeeded))}
		},
	}
}

func defaultJob(job *batchv1.Job) {
	spec := &job.Spec
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = ptr.To[int32](1)
	}
	rule.DefaultPointer(&spec.Parallelism, 1)
	if spec.BackoffLimitPerIndex != nil {
		rule.DefaultPointer(&spec.BackoffLimit, math.MaxInt32)
	}
	rule.DefaultPointer(&spec.BackoffLimit, defaultBackoffLimit)
	if len(job.Labels) == 0 {
		job.Labels = spec.Template.Labels // shared: prepareJobCreate adds to both
	}
	rule.DefaultPointer(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	rule.DefaultPointer(&spec.Suspend, false)
	replacement := batchv1.TerminatingOrFailed
	if spec.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	rule.DefaultPointer(&spec.PodReplacementPolicy, replacement)
	rule.DefaultPointer(&spec.ManualSelector, false)
	defaultJobTemplate(spec)
}

// defaultJobTemplate fills what a template in a CronJob gets too: its other fields
// wait until a job is made of it.
func defaultJobTemplate(spec *batchv1.JobSpec) {
	if spec.PodFailurePolicy != nil {
		for i := range spec.PodFailurePolicy.Rules {
			conditions := spec.PodFailurePolicy.Rules[i].OnPodConditions
			for j := range conditions {
				rule.Default(&conditions[j].Status, corev1.ConditionTrue)
			}
		}
	}
	podspec.Default(&spec.Template.Spec)
}

// prepareJobCreate gives the pods labels that no other job's pods have, and selects
// them. What the client set stays, and is judged by the validation. A job without
// labels of its own gets those of its pods, now: what is read later must be what was
// stored.
func prepareJobCreate(job *batchv1.Job) {
	dropScheduling(&job.Spec, nil)
	if !rule.IsTrue(job.Spec.ManualSelector) {
		labelPods(job)
	}
	if len(job.Labels) == 0 {
		job.Labels = job.Spec.Template.Labels
	}
	job.Labels = maps.Clone(job.Labels) // shared no longer: a stored job's labels change by themselves
}

// labelPods sets the labels of the job's pods and the selector for them.
func labelPods(job *batchv1.Job) {
	if job.Spec.Template.Labels == nil {
		job.Spec.Template.Labels = map[string]string{}
	}
	for label, value := range ownLabels(job) {
		if _, set := job.Spec.Template.Labels[label]; !set {
			job.Spec.Template.Labels[label] = value
		}
	}
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{}
	}
	if _, set := job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !set {
		metav1.AddLabelToSelector(job.Spec.Selector, batchv1.ControllerUidLabel, string(job.UID))
	}
}

// ownLabels are the labels of the pods of one job and no other.
func ownLabels(job *batchv1.Job) map[string]string {
	return map[string]string{
		legacyNameLabel: job.Name, legacyUIDLabel: string(job.UID),
		batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID),
	}
}

// dropScheduling: gang scheduling is alpha in 1.37 and not served.
func dropScheduling(spec, old *batchv1.JobSpec) {
	if old == nil || old.Scheduling == nil {
		spec.Scheduling = nil
	}
}

func changedJobWarnings(job, old *batchv1.Job) []string {
	warnings := workload.NameWarnings(job, old)
	if workload.Changed(job, old) {
		warnings = append(warnings, jobWarnings(&job.Spec, field.NewPath("spec"))...)
	}
	return warnings
}

func jobWarnings(spec *batchv1.JobSpec, path *field.Path) []string {
	var warnings []string
	if indexed(spec) && ptr.Deref(spec.Completions, 0) > completionsSoftLimit && ptr.Deref(spec.Parallelism, 0) > parallelismSoftLimit {
		warnings = append(
			warnings,
			fmt.Sprintf(
				"%s: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
				path,
			),
		)
	}
	return append(warnings, podwarnings.Template(&spec.Template, path.Child("template"))...)
}

func indexed(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

func jobColumns() []resource.Column[*batchv1.Job] {
	template := workload.Columns(func(job *batchv1.Job) *corev1.PodTemplateSpec { return &job.Spec.Template })
	return slices.Concat([]resource.Column[*batchv1.Job]{
		column.Name[*batchv1.Job](),
		column.Text("Status", "Status of the job.", 0, jobStatusCell),
		column.Text("Completions", batchv1.JobStatus{}.SwaggerDoc()["succeeded"], 0, completionsCell),
		{
			Name: "Duration", Type: "string", Description: "Time required to complete the job.",
			Cell: func(job *batchv1.Job, now time.Time) any { return jobDurationCell(&job.Status, now) },
		},
		column.Age[*batchv1.Job](),
	}, template, []resource.Column[*batchv1.Job]{
		column.Text("Selector", batchv1.JobSpec{}.SwaggerDoc()["selector"], 1, func(job *batchv1.Job) string {
			return workload.SelectorCell(job.Spec.Selector)
		}),
	})
}

func jobStatusCell(job *batchv1.Job) string {
	for _, state := range []struct {
		is   bool
		name string
	}{
		{has(job, batchv1.JobComplete), "Complete"},
		{has(job, batchv1.JobFailed), "Failed"},
		{job.DeletionTimestamp != nil, "Terminating"},
		{has(job, batchv1.JobSuspended), "Suspended"},
		{has(job, batchv1.JobFailureTarget), "FailureTarget"},
		{has(job, batchv1.JobSuccessCriteriaMet), "SuccessCriteriaMet"},
	} {
		if state.is {
			return state.name
		}
	}
	return "Running"
}

// has reports whether a condition is true.
func has(job *batchv1.Job, condition batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

func completionsCell(job *batchv1.Job) string {
	switch parallelism := ptr.Deref(job.Spec.Parallelism, 0); {
	case job.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", job.Status.Succeeded, *job.Spec.Completions)
	case parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", job.Status.Succeeded, parallelism)
	}
	return fmt.Sprintf("%d/1", job.Status.Succeeded)
}

func jobDurationCell(status *batchv1.JobStatus, now time.Time) string {
	switch {
	case status.StartTime == nil:
		return ""
	case status.CompletionTime == nil:
		return duration.HumanDuration(now.Sub(status.StartTime.Time))
	}
	return duration.HumanDuration(status.CompletionTime.Sub(status.StartTime.Time))
}
