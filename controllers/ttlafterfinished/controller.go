package ttlafterfinished

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// New deletes Jobs whose time is over.
func New() reconcile.Controller {
	return reconcile.Controller{Name: "ttl-after-finished-controller", Reads: []reconcile.Read{reconcile.Jobs}, Run: run}
}

type controller struct {
	env  *reconcile.Env
	jobs reconcile.Cache[*batchv1.Job]
	now  func() time.Time // the wall clock
}

func run(ctx context.Context, env *reconcile.Env) error { return runBy(ctx, env, env.Now) }

func runBy(ctx context.Context, env *reconcile.Env, now func() time.Time) error {
	c := &controller{env, reconcile.Jobs.From(env), now}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "ttl-after-finished", Queue: "ttl_jobs_to_delete", Reconcile: c.reconcile, Sources: []reconcile.Source{reconcile.Changes(c.jobs, ended)}, Env: env,
	})
}

// ended maps a Job that will be deleted to itself.
func ended(_, after metav1.Object) []reconcile.Key {
	job, ok := after.(*batchv1.Job)
	if !ok {
		return nil
	}
	if _, ok := expiry(job); !ok {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(job)}
}

// expiry is when the Job is deleted; false for never.
func expiry(job *batchv1.Job) (at time.Time, ok bool) {
	ttl := job.Spec.TTLSecondsAfterFinished
	if ttl == nil || job.DeletionTimestamp != nil {
		return time.Time{}, false
	}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		end := conditions.Jobs.Find(job.Status.Conditions, kind)
		if end != nil && end.Status == corev1.ConditionTrue && !end.LastTransitionTime.IsZero() {
			return end.LastTransitionTime.Add(time.Duration(*ttl) * time.Second), true
		}
	}
	return time.Time{}, false
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	job, err := c.jobs.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	if wait, due := c.due(job); !due {
		return wait, nil
	}
	// The spec may have changed, or the Job been replaced, since the cache was filled.
	job, err = c.env.Client.BatchV1().Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	if wait, due := c.due(job); !due {
		return wait, nil
	}
	foreground := metav1.DeletePropagationForeground
	err = c.env.Client.BatchV1().Jobs(key.Namespace).Delete(reconcile.WithCause(ctx, job), key.Name, metav1.DeleteOptions{
		PropagationPolicy: &foreground,
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
	})
	if err = reconcile.IgnoreNotFound(err); err != nil {
		return 0, fmt.Errorf("delete Job %s: %w", key, err)
	}
	return 0, nil
}

// waitMax is after how long a Job is looked at again: timers do not notice that somebody sets the clock.
const waitMax = time.Hour

// due tells whether the Job's time is over, or how long it is until then; 0 for never.
func (c *controller) due(job *batchv1.Job) (wait time.Duration, due bool) {
	at, ok := expiry(job)
	if !ok {
		return 0, false
	}
	wait = at.Sub(c.now())
	return min(wait, waitMax), wait <= 0
}
