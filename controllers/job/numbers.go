package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// action is what a pass did to pods, under upstream's names in metrics.
type action string

const (
	reconciling action = "reconciling" // the caches do not show all own writes yet
	tracking    action = "tracking"
	podsCreated action = "pods_created"
	podsDeleted action = "pods_deleted"
)

func (t todo) action(settled bool) action {
	switch {
	case len(t.remove) > 0:
		return podsDeleted
	case len(t.create) > 0:
		return podsCreated
	case !settled:
		return reconciling
	}
	return tracking
}

// mode is the completion mode, as metrics have it.
func mode(job *batchv1.Job) string {
	if indexed(job) {
		return string(batchv1.IndexedCompletion)
	}
	return string(batchv1.NonIndexedCompletion)
}

func (c *controller) countPass(job *batchv1.Job, did action, err error, took time.Duration) {
	result := "success"
	if err != nil {
		result = "error"
	}
	c.series.Syncs.WithLabelValues(mode(job), result, string(did)).Inc()
	c.series.SyncTime.WithLabelValues(mode(job), result, string(did)).Observe(took.Seconds())
}

// countEnded counts what a status that was written has ended: pods, and the Job itself. Indexes of a Job that became smaller take
// nothing back.
func (c *controller) countEnded(before, job *batchv1.Job) {
	pods := func(result string, more int32) {
		c.series.JobPodsFinished.WithLabelValues(mode(job), result).Add(float64(max(more, 0)))
	}
	pods("succeeded", job.Status.Succeeded-before.Status.Succeeded)
	pods("failed", job.Status.Failed-before.Status.Failed)
	for _, end := range job.Status.Conditions {
		switch {
		case finished(before) || end.Status != corev1.ConditionTrue:
		case end.Type == batchv1.JobComplete:
			c.series.JobsFinished.WithLabelValues(mode(job), "succeeded", end.Reason).Inc()
		case end.Type == batchv1.JobFailed:
			c.series.JobsFinished.WithLabelValues(mode(job), "failed", end.Reason).Inc()
		}
	}
}
