package cronjob

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

var (
	kind = batchv1.SchemeGroupVersion.WithKind("CronJob")

	cronJobs = reconcile.KindOf[*batchv1.CronJob](batchv1.SchemeGroupVersion.WithResource("cronjobs"))
	jobs     = reconcile.Jobs.By(reconcile.ByController)
)

// New keeps CronJobs.
func New() reconcile.Controller {
	return reconcile.Controller{Name: "cronjob-controller", Reads: []reconcile.Read{cronJobs, jobs}, Run: run}
}

// controller is one term of the controller.
type controller struct {
	env      *reconcile.Env
	cronJobs reconcile.Cache[*batchv1.CronJob]
	jobs     reconcile.Cache[*batchv1.Job]
	memory   *memory
	series   *numbers.Series
	// now is the wall clock. Its zone is that of schedules without one.
	now func() time.Time
}

func run(ctx context.Context, env *reconcile.Env) error { return runBy(ctx, env, env.Now) }

// runBy runs a term by a wall clock, which may jump. The queue waits by the clock of the Env.
func runBy(ctx context.Context, env *reconcile.Env, now func() time.Time) error {
	c := &controller{
		env: env, cronJobs: cronJobs.From(env), jobs: jobs.From(env), memory: newMemory(), series: env.Numbers.Series(), now: now,
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "cronjob", Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.Source{reconcile.Self(c.cronJobs), reconcile.Owner(c.jobs, kind.GroupKind())},
	})
}

// reconcile reads one CronJob and its Jobs, plans and acts.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	cached, err := c.cronJobs.Get(key)
	if apierrors.IsNotFound(err) {
		c.memory.forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	cronJob, owned, err := c.observe(ctx, c.memory.newest(cached))
	if err != nil || cronJob == nil {
		return 0, err
	}
	now := c.now()
	todo := plan(cronJob, owned, c.memory.edited(cronJob, now), now)
	c.complain(cronJob, todo.complaints)
	if err := c.act(reconcile.WithCause(ctx, cronJob), cronJob, todo); err != nil {
		return 0, err
	}
	return todo.again, nil
}
