package differential

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cronWorld is a CronJob with its Jobs, whose ends are steps.
type cronWorld struct {
	plain
	first *batchv1.CronJob
	// changed is when the schedule or its zone changed last.
	changed time.Time
	// both is whether it has had an interval and a deadline.
	both bool
}

func newCronJob(g *generator) workload {
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	setCron(g, c)
	c.Spec.Suspend = new(g.chance(8))
	c.Spec.JobTemplate.Labels = map[string]string{"app": workloadName}
	c.Spec.JobTemplate.Annotations = map[string]string{"a": "b"}
	c.Spec.JobTemplate.Spec.Template = template(g)
	return &cronWorld{first: c}
}

// setCron draws every field that decides when a Job starts, and which stay.
func setCron(g *generator, c *batchv1.CronJob) {
	c.Spec.Schedule = pick(g, "* * * * *", "*/2 * * * *", "*/3 * * * *", "1-59/2 * * * *", "@every 70s", "not a schedule")
	c.Spec.TimeZone = pick(g, nil, new("Etc/UTC"), new("Asia/Kolkata"), new("America/New_York"))
	c.Spec.StartingDeadlineSeconds = pick(g, nil, new(int64(12)), new(int64(65)), new(int64(200)))
	c.Spec.ConcurrencyPolicy = pick(g, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	c.Spec.SuccessfulJobsHistoryLimit = pick(g, nil, new(int32(0)), new(int32(1)), new(int32(3)))
	c.Spec.FailedJobsHistoryLimit = pick(g, nil, new(int32(0)), new(int32(1)), new(int32(3)))
}

var (
	changedAt = regexp.MustCompile(`changed=(\d+)`)
	lastAt    = regexp.MustCompile(`last=\S+ (\d+)`)
	jobAt     = regexp.MustCompile(`(?m)^  job w-(\d+)`)
)

// excuse: upstream counts an interval from the deadline if that is later than the last start (mostRecentScheduleTime), so
// one that is longer than startingDeadlineSeconds is never over; ours counts from the last start. And it makes up for times
// of a new schedule that were over when the schedule changed; ours does not (controllers/cronjob, doc.go).
func (l *cronWorld) excuse(ours, upstream string) string {
	if strings.Contains(ours, "both=true") {
		return "upstream counts an interval from the deadline, not from the last start"
	}
	changed := changedAt.FindStringSubmatch(ours)[1]
	if last := lastAt.FindStringSubmatch(upstream)[1]; last != lastAt.FindStringSubmatch(ours)[1] && last <= changed {
		return "upstream makes up for times of a new schedule before it was set" // its Job may be gone again
	}
	for _, m := range jobAt.FindAllStringSubmatch(upstream, -1) {
		if !strings.Contains(ours, m[0]) && m[1] <= changed {
			return "upstream makes up for times of a new schedule before it was set"
		}
	}
	return ""
}

func (l *cronWorld) create(w *world) {
	c := l.first.DeepCopy()
	c.Namespace = w.namespace
	create(w, w.Client.BatchV1().CronJobs(w.namespace), c)
}

func (l *cronWorld) edit(g *generator) (string, func(w *world)) {
	var next batchv1.CronJob
	setCron(g, &next)
	suspend, seed := g.chance(3), g.Uint64()
	set := func(f func(s *batchv1.CronJobSpec)) func(w *world) {
		return func(w *world) {
			change(w, w.Client.BatchV1().CronJobs(w.namespace), workloadName, func(c *batchv1.CronJob) { f(&c.Spec) })
		}
	}
	switch g.IntN(9) {
	case 0:
		return fmt.Sprintf("suspend %v", suspend), set(func(s *batchv1.CronJobSpec) { s.Suspend = &suspend })
	case 1:
		return "schedule " + next.Spec.Schedule, set(func(s *batchv1.CronJobSpec) { s.Schedule, l.changed = next.Spec.Schedule, time.Now() })
	case 2:
		return fmt.Sprint("zone ", deref(next.Spec.TimeZone)), set(func(s *batchv1.CronJobSpec) { s.TimeZone, l.changed = next.Spec.TimeZone, time.Now() })
	case 3:
		return fmt.Sprint("deadline ", deref(next.Spec.StartingDeadlineSeconds)),
			set(func(s *batchv1.CronJobSpec) { s.StartingDeadlineSeconds = next.Spec.StartingDeadlineSeconds })
	case 4:
		return fmt.Sprint("policy ", next.Spec.ConcurrencyPolicy), set(func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = next.Spec.ConcurrencyPolicy })
	case 5:
		return fmt.Sprint("limits ", deref(next.Spec.SuccessfulJobsHistoryLimit), deref(next.Spec.FailedJobsHistoryLimit)),
			set(func(s *batchv1.CronJobSpec) {
				s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = next.Spec.SuccessfulJobsHistoryLimit, next.Spec.FailedJobsHistoryLimit
			})
	case 6:
		return "somebody deletes a Job", func(w *world) {
			for _, j := range w.jobs()[:min(1, len(w.jobs()))] {
				_ = w.Client.BatchV1().Jobs(w.namespace).Delete(context.Background(), j.Name, metav1.DeleteOptions{})
			}
		}
	default:
		return "Jobs end", func(w *world) { w.endJobs(newGenerator(seed)) }
	}
}

func (w *world) jobs() []batchv1.Job {
	list, err := w.Client.BatchV1().Jobs(w.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// endJobs lets some Jobs that run succeed or fail.
func (w *world) endJobs(g *generator) {
	for _, j := range w.jobs() {
		end, well := g.chance(2), g.chance(2)
		if len(j.Status.Conditions) == 0 && end {
			changeStatus(w, w.Client.BatchV1().Jobs(w.namespace), j.Name, func(j *batchv1.Job) { setJobEnded(j, well) })
		}
	}
}

func setJobEnded(j *batchv1.Job, well bool) {
	now := metav1.Now()
	j.Status.StartTime = &metav1.Time{Time: j.CreationTimestamp.Add(time.Second)}
	c := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: now}
	if well {
		c.Type, j.Status.CompletionTime = batchv1.JobComplete, &now
	}
	j.Status.Conditions = []batchv1.JobCondition{c}
}

func (l *cronWorld) describe(w *world, out *strings.Builder) {
	c, err := w.Client.BatchV1().CronJobs(w.namespace).Get(context.Background(), workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	deadline := c.Spec.StartingDeadlineSeconds
	l.both = l.both || c.Spec.Schedule == "@every 70s" && deadline != nil
	fmt.Fprintf(out, "  %q deadline=%v both=%v changed=%08d\n", c.Spec.Schedule, deref(deadline), l.both, minute(&metav1.Time{Time: l.changed}))
	fmt.Fprintf(out, "  %s last=%s %08d succeeded=%s\n", time.Now().Format(time.TimeOnly), clock(c.Status.LastScheduleTime),
		minute(c.Status.LastScheduleTime), clock(c.Status.LastSuccessfulTime))
	for _, ref := range c.Status.Active {
		fmt.Fprintf(out, "  active %s %s/%s\n", ref.Kind, ref.Namespace, ref.Name)
	}
	for _, j := range w.jobs() {
		fmt.Fprintf(out, "  job %s labels=%v annotations=%v image=%s ended=%d deleted=%v", j.Name, j.Labels, j.Annotations,
			j.Spec.Template.Spec.Containers[0].Image, len(j.Status.Conditions), j.DeletionTimestamp != nil)
		for _, o := range j.OwnerReferences {
			fmt.Fprintf(out, " owner=%s %v %v", o.Kind, *o.Controller, *o.BlockOwnerDeletion)
		}
		out.WriteString("\n")
	}
}

// minute is a time in minutes since 1970; 0 for none.
func minute(at *metav1.Time) int64 {
	if at == nil {
		return 0
	}
	return max(0, at.Unix()/60)
}

func clock(t *metav1.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.TimeOnly)
}
