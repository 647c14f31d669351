package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// A statusRule refuses a status if it is broken. Most rules apply only where the
// status changed what they speak of: after a change of the spec, the controller must
// be able to report step by step.
type statusRule struct {
	applies, broken bool
	err             *field.Error
}

// validateJobStatus: others than the built-in controller may manage a job, and its
// readers rely on how a status develops (KEP-4368).
func validateJobStatus(job, old *batchv1.Job) field.ErrorList {
	errs := validateCounts(&job.Status, field.NewPath("status"))
	var rules []statusRule
	rules = append(rules, endRules(job, old)...)
	rules = append(rules, endedRules(job, old)...)
	rules = append(rules, indexRules(job, old)...)
	rules = append(rules, progressRules(job, old)...)
	for _, r := range rules {
		if r.applies && r.broken {
			errs = append(errs, r.err)
		}
	}
	return errs
}

func validateCounts(status *batchv1.JobStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	rule.Nonnegative(&errs, status.Active, path.Child("active"))
	rule.Nonnegative(&errs, status.Succeeded, path.Child("succeeded"))
	rule.Nonnegative(&errs, status.Failed, path.Child("failed"))
	rule.NonnegativePointer(&errs, status.Ready, path.Child("ready"))
	rule.NonnegativePointer(&errs, status.Terminating, path.Child("terminating"))
	uncounted := status.UncountedTerminatedPods
	if uncounted == nil {
		return errs
	}
	seen := map[types.UID]bool{}
	for _, list := range []struct {
		name string
		uids []types.UID
	}{{"succeeded", uncounted.Succeeded}, {"failed", uncounted.Failed}} {
		for i, uid := range list.uids {
			at := path.Child("uncountedTerminatedPods", list.name).Index(i)
			switch {
			case uid == "":
				errs = append(errs, field.Invalid(at, uid, "must not be empty"))
			case seen[uid]:
				errs = append(errs, field.Duplicate(at, uid))
			}
			seen[uid] = true
		}
	}
	return errs
}

func finished(job *batchv1.Job) bool {
	return has(job, batchv1.JobComplete) || has(job, batchv1.JobFailed)
}

// changed reports whether one of the conditions became true or stopped being so.
func changed(job, old *batchv1.Job, conditions ...batchv1.JobConditionType) bool {
	for _, condition := range conditions {
		if has(job, condition) != has(old, condition) {
			return true
		}
	}
	return false
}

// endRules: a job ends once, and either well or not.
func endRules(job, old *batchv1.Job) []statusRule {
	const (
		complete, failed       = batchv1.JobComplete, batchv1.JobFailed
		willComplete, willFail = batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget
	)
	refuse := func(message string) *field.Error {
		return field.Invalid(field.NewPath("status", "conditions"), field.OmitValueType{}, message)
	}
	rules := []statusRule{
		{
			changed(job, old, complete, failed),
			has(job, complete) && has(job, failed),
			refuse("cannot set Complete=True and Failed=true conditions"),
		},
		{
			changed(job, old, complete, willFail),
			has(job, complete) && has(job, willFail),
			refuse("cannot set Complete=True and FailureTarget=true conditions"),
		},
		{changed(job, old, failed) || failedIndexesChanged(job, old), has(job, failed) && !has(job, willFail),
			refuse("cannot set Failed=True condition without the FailureTarget=true condition")},
		{changed(job, old, complete, willComplete), has(job, complete) && !has(job, willComplete),
			refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")},
		{true, has(job, willComplete) && has(job, failed), refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions")},
		{
			true,
			has(job, willComplete) && has(job, willFail),
			refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
		},
		{true, job.Spec.SuccessPolicy != nil && !has(job, willComplete) && has(job, complete),
			refuse("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")},
		{true, has(old, willComplete) && !has(job, willComplete), refuse("cannot disable the SuccessCriteriaMet=True condition")},
		{true, has(old, complete) && !has(old, willComplete) && has(job, willComplete),
			refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")},
	}
	for _, terminal := range []batchv1.JobConditionType{failed, complete, willFail} {
		rules = append(
			rules,
			statusRule{
				true,
				has(old, terminal) && !has(job, terminal),
				refuse(fmt.Sprintf("cannot disable the terminal %s=True condition", terminal)),
			},
		)
	}
	return rules
}

// endedRules: a job that ended has no pods left, and times that say so.
func endedRules(job, old *batchv1.Job) []statusRule {
	status, was, path := &job.Status, &old.Status, field.NewPath("status")
	complete, ended := has(job, batchv1.JobComplete), finished(job)
	completeChanged, endedChanged := changed(job, old, batchv1.JobComplete), ended != finished(old)
	startChanged, completionChanged := !equalTimes(status.StartTime, was.StartTime), !equalTimes(status.CompletionTime, was.CompletionTime)
	idle := rule.IsTrue(job.Spec.Suspend) && ptr.Deref(job.Spec.Completions, -1) == 0
	uncounted := status.UncountedTerminatedPods
	return []statusRule{
		{completeChanged || completionChanged, status.CompletionTime != nil && !complete,
			field.Invalid(
				path.Child("completionTime"),
				status.CompletionTime,
				"cannot set completionTime when there is no Complete=True condition",
			)},
		{completeChanged || completionChanged, status.CompletionTime == nil && complete,
			field.Required(path.Child("completionTime"), "completionTime is required for Complete jobs")},
		{
			startChanged || completionChanged,
			status.StartTime != nil && status.CompletionTime != nil && status.CompletionTime.Before(status.StartTime),
			field.Invalid(path.Child("completionTime"), status.CompletionTime, "must be equal to or after `startTime`"),
		},
		{endedChanged || status.Active != was.Active, status.Active > 0 && ended,
			field.Invalid(path.Child("active"), status.Active, "active>0 is invalid for finished job")},
		{(endedChanged || startChanged) && !idle, status.StartTime == nil && ended,
			field.Required(path.Child("startTime"), "startTime is required for finished job")},
		{endedChanged || !equality.Semantic.DeepEqual(uncounted, was.UncountedTerminatedPods),
			ended && uncounted != nil && len(uncounted.Failed)+len(uncounted.Succeeded) > 0,
			field.Invalid(path.Child("uncountedTerminatedPods"), uncounted, "must be empty for finished job")},
		{endedChanged || !ptr.Equal(status.Terminating, was.Terminating), ptr.Deref(status.Terminating, 0) > 0 && ended,
			field.Invalid(path.Child("terminating"), status.Terminating, "terminating>0 is invalid for finished job")},
	}
}

// progressRules: what was counted stays counted, and times stay as they are.
func progressRules(job, old *batchv1.Job) []statusRule {
	status, was, path := &job.Status, &old.Status, field.NewPath("status")
	elastic := indexed(&job.Spec) && ptr.Equal(job.Spec.Completions, job.Spec.Parallelism)
	resuming := has(old, batchv1.JobSuspended) && conditionFalse(job, batchv1.JobSuspended)
	ready := ptr.Deref(status.Ready, 0)
	return []statusRule{
		{!ptr.Equal(status.Ready, was.Ready) || status.Active != was.Active, ready > status.Active,
			field.Invalid(path.Child("ready"), ready, "cannot set more ready pods than active")},
		{true, status.Failed < was.Failed, field.Invalid(path.Child("failed"), status.Failed, "cannot decrease the failed counter")},
		{
			!elastic,
			status.Succeeded < was.Succeeded,
			field.Invalid(path.Child("succeeded"), status.Succeeded, "cannot decrease the succeeded counter"),
		},
		{status.CompletionTime != nil && was.CompletionTime != nil, !equalTimes(status.CompletionTime, was.CompletionTime),
			field.Invalid(path.Child("completionTime"), status.CompletionTime, "field is immutable")},
		{!resuming, was.StartTime != nil && !equalTimes(status.StartTime, was.StartTime) && !rule.IsTrue(job.Spec.Suspend),
			field.Invalid(path.Child("startTime"), status.StartTime, "field is immutable for unsuspended job once set")},
	}
}

func conditionFalse(job *batchv1.Job, condition batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == condition && c.Status == "False" {
			return true
		}
	}
	return false
}

func equalTimes(a, b *metav1.Time) bool { return a.Equal(b) }

func failedIndexesChanged(job, old *batchv1.Job) bool {
	return !ptr.Equal(job.Status.FailedIndexes, old.Status.FailedIndexes)
}

// indexRules: indexes are below the number of completions, and each has one result.
func indexRules(job, old *batchv1.Job) []statusRule {
	status, path := &job.Status, field.NewPath("status")
	completed, failed := status.CompletedIndexes, ptr.Deref(status.FailedIndexes, "")
	completedChanged, failedChanged := completed != old.Status.CompletedIndexes, failedIndexesChanged(job, old)
	rules := []statusRule{
		{completedChanged, completed != "" && !indexed(&job.Spec),
			field.Invalid(
				path.Child("completedIndexes"),
				completed,
				"cannot set non-empty completedIndexes when non-indexed completion mode",
			)},
		{failedChanged, job.Spec.BackoffLimitPerIndex == nil && status.FailedIndexes != nil,
			field.Invalid(path.Child("failedIndexes"), failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")},
	}
	if job.Spec.Completions == nil {
		return rules
	}
	if _, err := countIndexes(completed, *job.Spec.Completions); err != nil {
		rules = append(rules, statusRule{completedChanged, true,
			field.Invalid(path.Child("completedIndexes"), completed, fmt.Sprintf("error parsing completedIndexes: %s", err))})
	}
	if _, err := countIndexes(failed, *job.Spec.Completions); err != nil && job.Spec.BackoffLimitPerIndex != nil {
		rules = append(rules, statusRule{failedChanged, true,
			field.Invalid(path.Child("failedIndexes"), failed, fmt.Sprintf("error parsing failedIndexes: %s", err))})
	}
	if index, found := overlap(completed, failed, *job.Spec.Completions); found {
		rules = append(rules, statusRule{failedChanged || completedChanged, true,
			field.Invalid(
				path.Child("failedIndexes"),
				failed,
				fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", index),
			)})
	}
	return rules
}
