package explain

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
)

// cronJob explains why a CronJob starts no Job, or why its last one is not done.
func (e *explainer) cronJob(name Object, cron *batchv1.CronJob) finding {
	f := finding{}
	if cron.Spec.Suspend != nil && *cron.Spec.Suspend {
		f.blame(Cause{Object: name, What: "it is suspended", Change: "whoever suspended it resumes it, or:",
			Command: patch(name, "merge", fields(false, "spec", "suspend"))})
	}
	jobs := owned[*batchv1.Job](e, Jobs, cron)
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	if cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(cron.Status.Active) > 0 {
		e.stillRuns(&f, name, cron, jobs)
	} else if len(jobs) > 0 {
		e.lastOf(&f, jobs[0])
	}
	e.failing(&f, name)
	if warning := e.lastWarning(cron); warning != nil && len(jobs) == 0 && len(f.causes) == 0 {
		f.blame(Cause{Object: name, What: warning.Reason + ": " + warning.Message})
	}
	for _, job := range firstOf(jobs[min(1, len(jobs)):]) {
		f.clear(Jobs.of(job), "it is not the last one")
	}
	free := name.String() + " has started no Job yet"
	if last := cron.Status.LastScheduleTime; last != nil {
		free = fmt.Sprintf("%s goes by its schedule, %s; the last time was %s", name, cron.Spec.Schedule, last.UTC().Format("2006-01-02 15:04 MST"))
	}
	return f.conclude(name.String()+" does not do what its schedule says", free)
}

// stillRuns blames a Job that keeps the next one from being started.
func (e *explainer) stillRuns(f *finding, name Object, cron *batchv1.CronJob, jobs []*batchv1.Job) {
	cause := Cause{
		Object: name, What: fmt.Sprintf("%s still runs, and its concurrencyPolicy is Forbid", cron.Status.Active[0].Name),
		Change: "the next Job is started once that one is done",
	}
	for _, job := range jobs {
		if job.UID == cron.Status.Active[0].UID {
			if below, held := e.because(Jobs.of(job), job); held {
				cause.Causes = []Cause{below}
			}
		}
	}
	f.blame(cause)
}

// lastOf blames the newest Job if something is wrong with it.
func (e *explainer) lastOf(f *finding, job *batchv1.Job) {
	if below, held := e.because(Jobs.of(job), job); held {
		f.blame(below)
		return
	}
	f.clear(Jobs.of(job), "nothing holds the last one")
}
