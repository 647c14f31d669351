package batch

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
)

// Limits of one job. Beyond the soft limits, the lists of indexes in its status
// could outgrow an object.
const (
	indexedParallelismMax = 100_000
	failedIndexesMax      = 100_000
	completionsSoftLimit  = 100_000
	parallelismSoftLimit  = 10_000
	failedIndexesSoftMax  = 10_000
	managedByMax          = 63
)

var (
	completionModes = []batchv1.CompletionMode{batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}
	replacements    = []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
	// endingPolicies are those of pods that come to an end.
	endingPolicies = []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
)

func validateJob(job *batchv1.Job) field.ErrorList {
	errs := validateOwnLabels(job)
	errs = append(errs, validateJobSpec(&job.Spec, field.NewPath("spec"))...)
	errs = append(errs, validateJobSelector(&job.Spec, nil, field.NewPath("spec"))...)
	return append(errs, validateHostNames(job)...)
}

// validateOwnLabels: a selector that the server makes finds the pods of this job only.
func validateOwnLabels(job *batchv1.Job) field.ErrorList {
	if rule.IsTrue(job.Spec.ManualSelector) || job.Spec.Selector == nil {
		return nil
	}
	var errs field.ErrorList
	if job.UID == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "uid"), ""))
	}
	own := ownLabels(job)
	at := field.NewPath("spec", "template", "metadata", "labels")
	for _, label := range slices.Sorted(maps.Keys(own)) {
		switch got, set := job.Spec.Template.Labels[label]; {
		case !set:
			errs = append(errs, field.Required(at.Key(label), fmt.Sprintf("must be '%s'", own[label])))
		case got != own[label]:
			errs = append(errs, field.Invalid(at.Key(label), job.Spec.Template.Labels, fmt.Sprintf("must be '%s'", own[label])))
		}
	}
	if matcher, err := metav1.LabelSelectorAsSelector(job.Spec.Selector); err == nil && !matcher.Matches(labels.Set(own)) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "selector"), job.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

// validateHostNames: pods of an indexed job are named after their index.
func validateHostNames(job *batchv1.Job) field.ErrorList {
	if completions := ptr.Deref(job.Spec.Completions, 0); indexed(&job.Spec) && completions > 0 {
		longest := fmt.Sprintf("%s-%d", job.Name, completions-1)
		if len(utilvalidation.IsDNS1123Label(longest)) > 0 {
			return field.ErrorList{
				field.Invalid(
					field.NewPath("metadata", "name"),
					job.Name,
					fmt.Sprintf("will not able to create pod with invalid DNS label: %s", longest),
				),
			}
		}
	}
	return nil
}

func validateJobSelector(spec, old *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		options := metav1validation.LabelSelectorValidationOptions{
			AllowInvalidLabelValueInSelector: old != nil && metav1validation.LabelSelectorHasInvalidLabelValue(old.Selector),
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, options, path.Child("selector"))...)
	}
	return append(errs, workload.ValidateSelected(&spec.Template, spec.Selector, path.Child("template"))...)
}

// validateJobSpec judges what a job and the template of a CronJob have in common.
func validateJobSpec(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	rule.NonnegativePointer(&errs, spec.Parallelism, path.Child("parallelism"))
	rule.NonnegativePointer(&errs, spec.Completions, path.Child("completions"))
	if deadline := spec.ActiveDeadlineSeconds; deadline != nil && *deadline < 0 {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *deadline, "must be greater than or equal to 0"))
	}
	rule.NonnegativePointer(&errs, spec.BackoffLimit, path.Child("backoffLimit"))
	rule.NonnegativePointer(&errs, spec.TTLSecondsAfterFinished, path.Child("ttlSecondsAfterFinished"))
	rule.NonnegativePointer(&errs, spec.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))
	rule.NonnegativePointer(&errs, spec.MaxFailedIndexes, path.Child("maxFailedIndexes"))
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if manager := spec.ManagedBy; manager != nil {
		errs = append(errs, utilvalidation.IsDomainPrefixedPath(path.Child("managedBy"), *manager)...)
		if len(*manager) > managedByMax {
			errs = append(errs, field.TooLong(path.Child("managedBy"), "", managedByMax))
		}
	}
	errs = append(errs, validateCompletionMode(spec, path)...)
	errs = append(errs, validateFailurePolicy(spec, path.Child("podFailurePolicy"))...)
	errs = append(errs, validateSuccessPolicy(spec, path.Child("successPolicy"))...)
	errs = append(errs, validateReplacement(spec, path.Child("podReplacementPolicy"))...)
	errs = append(errs, workload.ValidatePodTemplate(&spec.Template, path.Child("template"))...)
	return append(errs, validateEnding(spec, path.Child("template", "spec", "restartPolicy"))...)
}

// validateEnding: pods that restart always would never let a job end.
func validateEnding(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	switch policy := spec.Template.Spec.RestartPolicy; {
	case policy == "" || policy == corev1.RestartPolicyAlways:
		return field.ErrorList{
			field.Required(path, fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)),
		}
	case !slices.Contains(endingPolicies, policy):
		return field.ErrorList{field.NotSupported(path, policy, endingPolicies)}
	case spec.PodFailurePolicy != nil && policy != corev1.RestartPolicyNever:
		return field.ErrorList{
			field.Invalid(path, policy, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", corev1.RestartPolicyNever)),
		}
	}
	return nil
}

func validateReplacement(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	policy := spec.PodReplacementPolicy
	switch {
	case policy == nil:
		return nil
	case spec.PodFailurePolicy != nil:
		return rule.OneOf(*policy, []batchv1.PodReplacementPolicy{batchv1.Failed}, path)
	}
	return rule.OneOf(*policy, replacements, path)
}

func validateCompletionMode(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if mode := spec.CompletionMode; mode != nil {
		errs = append(errs, rule.OneOf(*mode, completionModes, path.Child("completionMode"))...)
		if *mode == batchv1.IndexedCompletion {
			return append(errs, validateIndexed(spec, path)...)
		}
		if *mode != batchv1.NonIndexedCompletion {
			return errs
		}
	}
	const needsIndexes = "requires indexed completion mode"
	if limit := spec.BackoffLimitPerIndex; limit != nil {
		errs = append(errs, field.Invalid(path.Child("backoffLimitPerIndex"), *limit, needsIndexes))
	}
	if failed := spec.MaxFailedIndexes; failed != nil {
		errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), *failed, needsIndexes))
	}
	return errs
}

func validateIndexed(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	parallelism, failed := ptr.Deref(spec.Parallelism, 0), ptr.Deref(spec.MaxFailedIndexes, 0)
	if spec.Completions == nil {
		errs = append(errs, field.Required(path.Child("completions"), fmt.Sprintf("when completion mode is %s", batchv1.IndexedCompletion)))
	}
	if parallelism > indexedParallelismMax {
		errs = append(
			errs,
			field.Invalid(
				path.Child("parallelism"),
				parallelism,
				fmt.Sprintf(
					"must be less than or equal to %d when completion mode is %s",
					indexedParallelismMax,
					batchv1.IndexedCompletion,
				),
			),
		)
	}
	if spec.Completions != nil && failed > *spec.Completions {
		errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), failed, "must be less than or equal to completions"))
	}
	if failed > failedIndexesMax {
		errs = append(
			errs,
			field.Invalid(path.Child("maxFailedIndexes"), failed, fmt.Sprintf("must be less than or equal to %d", failedIndexesMax)),
		)
	}
	if spec.BackoffLimitPerIndex == nil || ptr.Deref(spec.Completions, 0) <= completionsSoftLimit {
		return errs
	}
	const beyond = "must be less than or equal to %d when completions are above %d and used with backoff limit per index"
	if spec.MaxFailedIndexes == nil {
		errs = append(
			errs,
			field.Required(
				path.Child("maxFailedIndexes"),
				fmt.Sprintf("must be specified when completions is above %d", completionsSoftLimit),
			),
		)
	}
	if parallelism > parallelismSoftLimit {
		errs = append(
			errs,
			field.Invalid(path.Child("parallelism"), parallelism, fmt.Sprintf(beyond, parallelismSoftLimit, completionsSoftLimit)),
		)
	}
	if failed > failedIndexesSoftMax {
		errs = append(
			errs,
			field.Invalid(path.Child("maxFailedIndexes"), failed, fmt.Sprintf(beyond, failedIndexesSoftMax, completionsSoftLimit)),
		)
	}
	return errs
}
