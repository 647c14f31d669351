package cronjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// complain tells complaints that the last pass did not have.
func (c *controller) complain(cronJob *batchv1.CronJob, complaints []event) {
	for _, e := range c.memory.untold(cronJob, complaints) {
		c.env.Events.Event(cronJob, e.eventtype, e.reason, e.message)
	}
}

// act starts the Job that is due, writes the status, and then deletes what the status has recorded.
func (c *controller) act(ctx context.Context, cronJob *batchv1.CronJob, t *todo) error {
	startErr := c.start(ctx, cronJob, t)
	if err := c.writeStatus(ctx, cronJob, t.status); err != nil {
		return errors.Join(startErr, err)
	}
	for _, e := range t.events {
		c.env.Events.Event(cronJob, e.eventtype, e.reason, e.message)
	}
	errs := []error{startErr}
	for _, job := range t.expired {
		errs = append(errs, c.remove(ctx, cronJob, job))
	}
	return errors.Join(errs...)
}

// start deletes the Jobs that are replaced, creates the one that is due, and notes both in the status.
func (c *controller) start(ctx context.Context, cronJob *batchv1.CronJob, t *todo) error {
	if t.create == nil {
		return nil
	}
	for _, job := range t.replace {
		if err := c.remove(ctx, cronJob, job); err != nil {
			return err
		}
		t.status.Active = without(t.status.Active, job)
	}
	job, err := c.create(ctx, cronJob, t.create, t.due)
	if err != nil || job == nil {
		return err
	}
	if endOf(job) == "" && !lists(&t.status, job) {
		t.status.Active = append(t.status.Active, refTo(job))
	}
	t.status.LastScheduleTime = new(metav1.NewTime(t.due))
	return nil
}

// create creates a Job that is due since then, or finds it if it was created before; nil if somebody else has taken its name.
func (c *controller) create(ctx context.Context, cronJob *batchv1.CronJob, job *batchv1.Job, due time.Time) (*batchv1.Job, error) {
	client := c.env.Client.BatchV1().Jobs(job.Namespace)
	created, err := client.Create(ctx, job, metav1.CreateOptions{})
	switch {
	case err == nil:
		c.env.Events.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", created.Name)
		c.series.CronJobSkew.Observe(created.CreationTimestamp.Sub(due).Seconds())
		return created, nil
	case apierrors.IsAlreadyExists(err):
		found, err := client.Get(ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("get Job %s: %w", job.Name, err)
		}
		if !metav1.IsControlledBy(found, cronJob) {
			return nil, nil
		}
		return found, nil
	case ctx.Err() == nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		c.env.Events.Eventf(cronJob, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
	}
	return nil, fmt.Errorf("create Job: %w", err)
}

// remove deletes a Job, and with it its pods. One that is gone or going is left alone.
func (c *controller) remove(ctx context.Context, cronJob *batchv1.CronJob, job *batchv1.Job) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	background := metav1.DeletePropagationBackground
	err := c.env.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(job.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		if ctx.Err() == nil && !apierrors.IsConflict(err) { // another one has its name, as the cache will show
			c.env.Events.Eventf(cronJob, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		}
		return fmt.Errorf("delete Job %s: %w", job.Name, err)
	}
	c.memory.removed(cronJob, job.UID)
	if err == nil {
		c.env.Events.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted job %v", job.Name)
	}
	return nil
}

// writeStatus writes a status that has changed. A CronJob that is gone needs none.
func (c *controller) writeStatus(ctx context.Context, cronJob *batchv1.CronJob, status batchv1.CronJobStatus) error {
	if apiequality.Semantic.DeepEqual(cronJob.Status, status) {
		return nil
	}
	next := cronJob.DeepCopy()
	next.Status = status
	next, err := c.env.Client.BatchV1().CronJobs(cronJob.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	c.memory.wrote(next)
	return nil
}
