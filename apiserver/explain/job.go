package explain

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// job explains a Job.
func (e *explainer) job(name Object, job *batchv1.Job) finding {
	f := finding{}
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			f.clear(name, "it is complete")
			return f.conclude("", name.String()+" is complete")
		case c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget:
			return e.failedJob(name, job, c)
		}
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		f.blame(Cause{
			Object: name, What: "it is suspended", Change: "whoever suspended it resumes it, or:",
			Command: patch(name, "merge", fields(false, "spec", "suspend")),
		})
		e.clearQuotas(&f, name.Namespace, "")
		return f.conclude(name.String()+" makes no pods", "")
	}
	e.refused(&f, name, job, int64(wantedReplicas(job.Spec.Parallelism)-job.Status.Active))
	e.podsOf(&f, owned[*corev1.Pod](e, Pods, job))
	if job.Spec.BackoffLimit != nil {
		f.clear(name, "%d of %d pods that may fail have failed", job.Status.Failed, *job.Spec.BackoffLimit)
	}
	text := fmt.Sprintf("%s runs: %d pods are active, %d have succeeded, %d have failed", name, job.Status.Active, job.Status.Succeeded, job.Status.Failed)
	return f.conclude(text, text)
}

// failedJob: a Job that has failed stays so; it has to be made again.
func (e *explainer) failedJob(name Object, job *batchv1.Job, c batchv1.JobCondition) finding {
	f := finding{}
	cause := Cause{Object: name, What: c.Reason + ": " + c.Message, Change: "a Job that has failed stays so: change its template, and make it again"}
	switch c.Reason {
	case batchv1.JobReasonBackoffLimitExceeded:
		cause.What += fmt.Sprintf(" (backoffLimit is %d, and %d pods have failed)", orZero(job.Spec.BackoffLimit), job.Status.Failed)
	case batchv1.JobReasonDeadlineExceeded:
		if job.Spec.ActiveDeadlineSeconds != nil {
			cause.What += fmt.Sprintf(" (activeDeadlineSeconds is %d)", *job.Spec.ActiveDeadlineSeconds)
		}
	}
	pods := owned[*corev1.Pod](e, Pods, job)
	for _, pod := range pods {
		below := e.of(Pods.of(pod), pod)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			f.clear(Pods.of(pod), "it has succeeded")
		case len(below.causes) > 0:
			cause.Causes = append(cause.Causes, below.asCause(Pods.of(pod)))
		}
	}
	cause.Causes = atMost(cause.Causes)
	cause.Command = kubectl(name.Namespace, "delete", name.qualified(), name.Name)
	f.blame(cause)
	if c.Reason != batchv1.JobReasonDeadlineExceeded {
		f.clear(name, "its deadline has not passed")
	}
	e.clearQuotas(&f, name.Namespace, "")
	return f.conclude(name.String()+" has failed", "")
}

func orZero(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
