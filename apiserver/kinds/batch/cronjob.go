package batch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a machine without time zones must judge a CronJob as any other

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// cronJobNameMax leaves room for the time in the name of a job, "-29123456".
	cronJobNameMax         = 52
	defaultSucceededJobs   = 3
	defaultFailedJobs      = 1
	scheduleZone           = "TZ"
	zoneInScheduleAndField = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
	zoneInSchedule         = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
)

var concurrencyPolicies = []batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent}

// zonePart is a component of the name of a time zone
// (https://data.iana.org/time-zones/theory.html#naming), with digits as old names have them.
var zonePart = regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`)

func cronJobs() resource.Kind[*batchv1.CronJob] {
	return resource.Kind[*batchv1.CronJob]{
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"),
		Plural:           "cronjobs",
		ShortNames:       []string{"cj"},
		Categories:       []string{"all"},
		New:              func() *batchv1.CronJob { return &batchv1.CronJob{} },
		NewList:          func() runtime.Object { return &batchv1.CronJobList{} },
		Default:          defaultCronJob,
		PrepareCreate:    func(cj *batchv1.CronJob) { dropScheduling(&cj.Spec.JobTemplate.Spec, nil) },
		PrepareUpdate: func(cj, old *batchv1.CronJob) {
			dropScheduling(&cj.Spec.JobTemplate.Spec, &old.Spec.JobTemplate.Spec)
		},
		Validate:       validateCronJob,
		ValidateUpdate: validateCronJobUpdate,
		ChangeWarnings: cronJobWarnings,
		Spec:           func(cj *batchv1.CronJob) any { return &cj.Spec },
		Status:         func(cj *batchv1.CronJob) any { return &cj.Status },
		Generation:     true,
		Columns:        cronJobColumns(),
	}
}

func defaultCronJob(cj *batchv1.CronJob) {
	rule.Default(&cj.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	rule.DefaultPointer(&cj.Spec.Suspend, false)
	rule.DefaultPointer(&cj.Spec.SuccessfulJobsHistoryLimit, defaultSucceededJobs)
	rule.DefaultPointer(&cj.Spec.FailedJobsHistoryLimit, defaultFailedJobs)
	defaultJobTemplate(&cj.Spec.JobTemplate.Spec)
}

func cronJobWarnings(cj, old *batchv1.CronJob) []string {
	warnings := workload.NameWarnings(cj, old)
	if workload.Changed(cj, old) {
		warnings = append(warnings, jobWarnings(&cj.Spec.JobTemplate.Spec, field.NewPath("spec", "jobTemplate", "spec"))...)
	}
	if strings.Contains(cj.Spec.Schedule, scheduleZone) {
		warnings = append(
			warnings,
			"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
		)
	}
	return warnings
}

func cronJobColumns() []resource.Column[*batchv1.CronJob] {
	spec, status := batchv1.CronJobSpec{}.SwaggerDoc(), batchv1.CronJobStatus{}.SwaggerDoc()
	suspend := column.Text("Suspend", spec["suspend"], 0, func(cj *batchv1.CronJob) string { return flagCell(cj.Spec.Suspend) })
	suspend.Type = "boolean" // though the cell is a word, as upstream has it
	template := workload.Columns(func(cj *batchv1.CronJob) *corev1.PodTemplateSpec { return &cj.Spec.JobTemplate.Spec.Template })
	return slices.Concat([]resource.Column[*batchv1.CronJob]{
		column.Name[*batchv1.CronJob](),
		column.Text("Schedule", spec["schedule"], 0, func(cj *batchv1.CronJob) string { return cj.Spec.Schedule }),
		column.Text("Timezone", spec["timeZone"], 0, func(cj *batchv1.CronJob) string { return ptr.Deref(cj.Spec.TimeZone, column.None) }),
		suspend,
		column.Int("Active", status["active"], func(cj *batchv1.CronJob) int64 { return int64(len(cj.Status.Active)) }),
		{
			Name: "Last Schedule", Type: "string", Description: status["lastScheduleTime"],
			Cell: func(cj *batchv1.CronJob, now time.Time) any {
				if cj.Status.LastScheduleTime == nil {
					return column.None
				}
				return column.Since(cj.Status.LastScheduleTime.Time, now)
			},
		},
		column.Age[*batchv1.CronJob](),
	}, template, []resource.Column[*batchv1.CronJob]{
		column.Text("Selector", batchv1.JobSpec{}.SwaggerDoc()["selector"], 1, func(cj *batchv1.CronJob) string {
			return workload.SelectorCell(cj.Spec.JobTemplate.Spec.Selector)
		}),
	})
}

func flagCell(flag *bool) string {
	switch {
	case flag == nil:
		return "<unset>"
	case *flag:
		return "True"
	}
	return "False"
}

func validateCronJob(cj *batchv1.CronJob) field.ErrorList {
	errs := validateCronJobSpec(&cj.Spec, nil)
	if len(cj.Name) > cronJobNameMax {
		errs = append(
			errs,
			field.Invalid(field.NewPath("metadata", "name"), cj.Name, fmt.Sprintf("must be no more than %d characters", cronJobNameMax)),
		)
	}
	return errs
}

func validateCronJobUpdate(cj, old *batchv1.CronJob) field.ErrorList {
	return validateCronJobSpec(&cj.Spec, &old.Spec)
}

// validateCronJobSpec judges a spec; old is nil for a new CronJob. A schedule with a
// time zone, as it was accepted once, and a zone no longer known may stay.
func validateCronJobSpec(spec, old *batchv1.CronJobSpec) field.ErrorList {
	path := field.NewPath("spec")
	hadZone := old != nil && strings.Contains(old.Schedule, scheduleZone)
	errs := validateSchedule(spec, hadZone, path.Child("schedule"))
	if deadline := spec.StartingDeadlineSeconds; deadline != nil && *deadline < 0 {
		errs = append(errs, field.Invalid(path.Child("startingDeadlineSeconds"), *deadline, "must be greater than or equal to 0"))
	}
	if spec.TimeZone != nil && (old == nil || !ptr.Equal(old.TimeZone, spec.TimeZone)) {
		errs = append(errs, validateTimeZone(*spec.TimeZone, path.Child("timeZone"))...)
	}
	errs = append(errs, rule.RequiredOneOf(spec.ConcurrencyPolicy, concurrencyPolicies, path.Child("concurrencyPolicy"))...)
	errs = append(errs, validateJobTemplate(&spec.JobTemplate.Spec, path.Child("jobTemplate", "spec"))...)
	rule.NonnegativePointer(&errs, spec.SuccessfulJobsHistoryLimit, path.Child("successfulJobsHistoryLimit"))
	rule.NonnegativePointer(&errs, spec.FailedJobsHistoryLimit, path.Child("failedJobsHistoryLimit"))
	return errs
}

// validateJobTemplate: each job of the template gets a selector of its own.
func validateJobTemplate(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := validateJobSpec(spec, path)
	if spec.Selector != nil {
		errs = append(errs, field.Invalid(path.Child("selector"), spec.Selector, "`selector` will be auto-generated"))
	}
	if rule.IsTrue(spec.ManualSelector) {
		errs = append(errs, field.NotSupported(path.Child("manualSelector"), spec.ManualSelector, []string{"nil", "false"}))
	}
	return errs
}

func validateSchedule(spec *batchv1.CronJobSpec, hadZone bool, path *field.Path) field.ErrorList {
	if spec.Schedule == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if err := parseSchedule(spec.Schedule); err != nil {
		errs = append(errs, field.Invalid(path, spec.Schedule, err.Error()))
	}
	switch zoned := strings.Contains(spec.Schedule, scheduleZone); {
	case zoned && hadZone && spec.TimeZone != nil:
		errs = append(errs, field.Invalid(path, spec.Schedule, zoneInScheduleAndField))
	case zoned && !hadZone:
		errs = append(errs, field.Invalid(path, spec.Schedule, zoneInSchedule))
	}
	return errs
}

// parseSchedule survives that the library panics on a zone without a schedule, "TZ=0".
func parseSchedule(schedule string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	_, err = cron.ParseStandard(schedule)
	return err
}

func validateTimeZone(zone string, path *field.Path) field.ErrorList {
	refuse := func(why string) field.ErrorList { return field.ErrorList{field.Invalid(path, zone, why)} }
	if zone == "" {
		return refuse("timeZone must be nil or non-empty string")
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			return refuse("unknown time zone " + zone)
		}
	}
	var errs field.ErrorList
	if strings.EqualFold(zone, "Local") {
		errs = refuse("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		errs = append(errs, refuse(err.Error())...)
	}
	return errs
}
