package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// todo is what one pass does to pods.
type todo struct {
	// end is SuccessCriteriaMet or FailureTarget: the Job ends, and remove are its last pods.
	end *batchv1.JobCondition
	// remove are deleted. Those of a Job that goes on do not count any more: they lose their
	// finalizer first.
	remove []*corev1.Pod
	// create has the index of each pod to be created, noIndex for those of Jobs without indexes.
	create []int
	// managed is false when the pods that exist are not known well enough to create and remove.
	managed bool
	// again is when time alone changes something; 0 for never.
	again time.Duration
}

// plan decides about the pods of a Job. It is pure: settled says whether all pods that were created
// are among those seen, failures is the row of failures with those that are not counted yet.
func plan(v *view, settled bool, failures streak, now time.Time) todo {
	if end := ending(v, now); end != nil {
		return todo{end: end, remove: v.active}
	}
	t := todo{}
	if settled && v.job.DeletionTimestamp == nil {
		t = manage(v, failures, now)
	}
	if deadline := v.job.Spec.ActiveDeadlineSeconds; deadline != nil && v.job.Status.StartTime != nil && !suspended(v.job) {
		t.again = sooner(t.again, v.job.Status.StartTime.Add(time.Duration(*deadline)*time.Second).Sub(now))
	}
	return t
}

// sooner is the earlier of two pauses of which 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ending is why the Job ends, nil if it goes on. What an earlier pass decided stands; then come
// failures, then success.
func ending(v *view, now time.Time) *batchv1.JobCondition {
	for _, decided := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if is(v.job, decided) {
			return conditions.Jobs.Find(v.job.Status.Conditions, decided)
		}
	}
	if reason, message := failure(v, now); reason != "" {
		return condition(batchv1.JobFailureTarget, reason, message, now)
	}
	if indexed(v.job) {
		if message, meets := meetsSuccessPolicy(v.job, v.completed); meets {
			return condition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy, message, now)
		}
	}
	return nil
}

// failure is why the Job fails; empty if it does not.
func failure(v *view, now time.Time) (reason, message string) {
	spec := &v.job.Spec
	for _, pod := range v.pods {
		if failedPod(v.job, pod) {
			if verdict := judge(v.job, pod); verdict.failsJob {
				return batchv1.JobReasonPodFailurePolicy, verdict.message
			}
		}
	}
	switch {
	case v.failed > *spec.BackoffLimit || restartedTooOften(v):
		return batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	case pastDeadline(v.job, now):
		return batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"
	case !indexed(v.job) || spec.BackoffLimitPerIndex == nil:
		return "", ""
	case spec.MaxFailedIndexes != nil && v.lost.total() > int(*spec.MaxFailedIndexes):
		return batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes"
	case v.lost.total() > 0 && v.lost.total()+v.completed.total() >= int(*spec.Completions):
		return batchv1.JobReasonFailedIndexes, "Job has failed indexes"
	}
	return "", ""
}

// restartedTooOften counts restarts of containers as failures when the node restarts them.
func restartedTooOften(v *view) bool {
	if v.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	var restarts int32
	for _, pod := range v.pods {
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
			continue
		}
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range list {
				restarts += list[i].RestartCount
			}
		}
	}
	return restarts > 0 && restarts >= *v.job.Spec.BackoffLimit
}

// pastDeadline tells whether the Job was active for too long. The time stands still while it is suspended.
func pastDeadline(job *batchv1.Job, now time.Time) bool {
	if job.Spec.ActiveDeadlineSeconds == nil || job.Status.StartTime == nil || suspended(job) {
		return false
	}
	return now.Sub(job.Status.StartTime.Time) >= time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second
}

// complete tells whether enough pods succeeded and none is active. Without a number of completions, one that
// succeeded is enough: each pod of a work queue knows when all work is done.
func complete(v *view, active int32) bool {
	return active == 0 && v.succeeded >= ptr.Deref(v.job.Spec.Completions, 1)
}

// condition is a new condition that is true.
func condition(kind batchv1.JobConditionType, reason, message string, now time.Time) *batchv1.JobCondition {
	return &batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastProbeTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}
