package job

import (
	"context"
	"errors"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// batchPeriod is the shortest pause between two passes over a Job that write, so that a burst of pods that end makes
// few writes.
const batchPeriod = 100 * time.Millisecond

var kind = batchv1.SchemeGroupVersion.WithKind("Job")

// New keeps Jobs.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  "job-controller",
		Reads: []reconcile.Read{reconcile.Jobs, reconcile.Pods.By(reconcile.ByController)},
		Run:   run,
	}
}

// controller is one term of the controller.
type controller struct {
	env    *reconcile.Env
	jobs   reconcile.Cache[*batchv1.Job]
	pods   reconcile.Cache[*corev1.Pod]
	expect *expect.Expectations
	memory *memory
	series *numbers.Series
}

// run runs two loops: one over Jobs, one over pods that nobody counts any more.
func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, jobs: reconcile.Jobs.From(env), pods: reconcile.Pods.By(reconcile.ByController).From(env),
		expect: expect.New(burst), memory: newMemory(), series: env.Numbers.Series(),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [2]error
	var wg sync.WaitGroup
	for i, loop := range []reconcile.Config{
		{Name: "job", Reconcile: c.reconcile, Env: env, Sources: []reconcile.Source{
			reconcile.Changes(c.jobs, c.jobChanged), reconcile.Changes(c.pods, c.podChanged)}},
		{Name: "job-orphans", Queue: "job_orphan_pod", Reconcile: c.freeOrphan, Env: env, Sources: []reconcile.Source{
			reconcile.Changes(c.jobs, c.podsOfEnded), reconcile.Changes(c.pods, trackedPod)}},
	} {
		wg.Go(func() {
			defer cancel()
			errs[i] = reconcile.Run(ctx, loop)
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// jobChanged maps a Job to itself and forgets what was remembered of a deleted one.
func (c *controller) jobChanged(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		c.forget(before.(*batchv1.Job))
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

func (c *controller) forget(job *batchv1.Job) {
	c.expect.Forget(job.UID)
	c.memory.forget(job.UID)
}

// podChanged maps a pod to the Jobs that control it or, for one without a controller, to those that would adopt it. It
// also notes which own writes the cache now shows.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, pod := range []metav1.Object{before, after} {
		if key, ok := reconcile.OwnerKey(pod, kind.GroupKind()); ok {
			keys = append(keys, key)
		}
	}
	c.expect.Seen(before, after)
	c.memory.seen(before, after)
	if len(keys) == 0 && after != nil && metav1.GetControllerOfNoCopy(after) == nil {
		return c.adopters(after)
	}
	return keys
}

// adopters lists the Jobs whose selector matches a pod without a controller.
func (c *controller) adopters(pod metav1.Object) []reconcile.Key {
	jobs, err := c.jobs.List(pod.GetNamespace(), nil)
	if err != nil {
		return nil
	}
	var keys []reconcile.Key
	for _, job := range jobs {
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.GetLabels())) {
			keys = append(keys, reconcile.KeyOf(job))
		}
	}
	return keys
}

// reconcile reads one Job and its pods, plans, acts and counts.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	job, err := c.jobs.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	if finished(job) {
		c.forget(job)
		return 0, nil
	}
	job = c.memory.newest(job)
	if elsewhere(job) || finished(job) {
		return 0, nil
	}
	now := c.env.Now()
	if wait := c.memory.rest(job, now); wait > 0 {
		return wait, nil
	}
	action, again, err := c.pass(reconcile.WithCause(ctx, job), job, now)
	c.countPass(job, action, err, c.env.Now().Sub(now))
	return again, err
}

// pass is one pass over a Job that goes on, and what it did to pods.
func (c *controller) pass(ctx context.Context, stored *batchv1.Job, now time.Time) (did action, again time.Duration, err error) {
	pods, settled, err := c.observe(ctx, stored)
	if err != nil {
		return reconciling, 0, err
	}
	v := look(begun(stored, now), pods)
	failures := c.memory.failures(stored, pods).with(v.newSucceeded, v.newFailed)
	todo := plan(v, settled, failures, now)
	o, actErr := c.act(ctx, v, todo, settled)
	if o.end == nil && settled && len(todo.create) == 0 && complete(v, o.active) {
		o.over = true
		o.end = condition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached,
			"Reached expected number of succeeded pods", now)
	}
	if err := c.keepAccount(ctx, stored, v, o, failures); err != nil {
		return todo.action(settled), 0, errors.Join(actErr, err)
	}
	if !settled {
		todo.again = sooner(todo.again, expect.Patience) // then the API itself is asked
	}
	return todo.action(settled), todo.again, actErr
}
