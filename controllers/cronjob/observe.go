package cronjob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// observe gathers the Jobs that the CronJob controls or lists as active, by name. Where the caches of the two kinds
// contradict each other it asks the API. The CronJob is nil when it is gone.
func (c *controller) observe(ctx context.Context, cronJob *batchv1.CronJob) (*batchv1.CronJob, []*batchv1.Job, error) {
	owned, err := c.jobs.Owned(cronJob)
	if err != nil {
		return nil, nil, err
	}
	owned = c.memory.present(cronJob, owned)
	if unlisted(cronJob, owned) {
		if cronJob, err = c.live(ctx, cronJob); err != nil || cronJob == nil {
			return nil, nil, err
		}
	}
	all := owned
	for _, ref := range cronJob.Status.Active {
		if slices.ContainsFunc(owned, func(job *batchv1.Job) bool { return job.UID == ref.UID }) {
			continue
		}
		job, err := c.listed(ctx, cronJob.Namespace, ref)
		if err != nil {
			return nil, nil, err
		}
		if job != nil {
			all = append(all, job)
		}
	}
	slices.SortFunc(all, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
	return cronJob, all, nil
}

// unlisted tells whether there are Jobs that the status should list: their cache may be ahead of that of CronJobs.
func unlisted(cronJob *batchv1.CronJob, owned []*batchv1.Job) bool {
	return slices.ContainsFunc(owned, func(job *batchv1.Job) bool { return endOf(job) == "" && !lists(&cronJob.Status, job) })
}

// live is the CronJob as the API has it; nil when it is gone.
func (c *controller) live(ctx context.Context, cronJob *batchv1.CronJob) (*batchv1.CronJob, error) {
	live, err := c.env.Client.BatchV1().CronJobs(cronJob.Namespace).Get(ctx, cronJob.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get CronJob: %w", err)
	case live.UID != cronJob.UID:
		return nil, nil // its event will come
	}
	return live, nil
}

// listed is the Job that an entry of the status means; nil when it is gone, or in another namespace.
func (c *controller) listed(ctx context.Context, namespace string, ref corev1.ObjectReference) (*batchv1.Job, error) {
	job, err := c.jobs.Get(reconcile.Key{Namespace: namespace, Name: ref.Name})
	if err != nil || job.UID != ref.UID { // the cache may not have it yet
		job, err = c.env.Client.BatchV1().Jobs(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get Job %s: %w", ref.Name, err)
	case job.UID != ref.UID:
		return nil, nil // another one has its name
	}
	return job, nil
}
