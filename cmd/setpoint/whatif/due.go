package whatif

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// due is something that is known to come though nothing changes until then.
type due struct {
	// after is how long it takes from now.
	after time.Duration
	what  string
	// rollout: a pod becomes ready, or available.
	rollout bool
}

// dues are what is known to come. A loop that was refused tries again by itself, which is not among them: see retries.
func (l *ledger) dues(ctx context.Context) ([]due, error) {
	now := l.fork.Clock().Now()
	available, err := l.minReady(ctx)
	if err != nil {
		return nil, err
	}
	var all []due
	add := func(at time.Time, rollout bool, format string, args ...any) {
		if after := at.Sub(now); after > 0 {
			all = append(all, due{after, fmt.Sprintf(format, args...), rollout})
		}
	}
	for _, pod := range l.pods {
		l.duesOf(pod, available, add)
	}
	if err := l.jobs(ctx, add); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b due) int { return int(a.after - b.after) })
	return all, nil
}

type adder func(at time.Time, rollout bool, format string, args ...any)

func (l *ledger) duesOf(pod *corev1.Pod, available map[string]time.Duration, add adder) {
	owner := l.owner(pod)
	if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" || over(pod) {
		return
	}
	if state := l.nodes[pod.Spec.NodeName]; state == "" || strings.HasPrefix(state, "is not Ready") {
		l.tolerations(pod, add)
		return
	}
	var habit simulated.Habit
	if l.fork.habits != nil {
		habit = l.fork.habits.of(pod)
	}
	ready := condition(pod, corev1.PodReady)
	switch {
	case ready == nil || ready.Status != corev1.ConditionTrue:
		if !habit.Never {
			add(habit.Ready(pod), true, "a pod of %s in %s is ready", owner, pod.Namespace)
		}
	case available[pod.Namespace+"/"+owner] > 0:
		add(ready.LastTransitionTime.Add(available[pod.Namespace+"/"+owner]), true, "a pod of %s in %s is available", owner, pod.Namespace)
	}
	if end, does := simulated.Ends(pod, habit); does && pod.Status.Phase == corev1.PodRunning {
		add(end, false, "a pod of %s in %s ends", owner, pod.Namespace)
	}
	l.tolerations(pod, add)
}

// tolerations are when a pod has tolerated a taint of its node for as long as it does.
func (l *ledger) tolerations(pod *corev1.Pod, add adder) {
	for _, taint := range l.taints[pod.Spec.NodeName] {
		since := l.fork.Clock().Now()
		if taint.TimeAdded != nil {
			since = taint.TimeAdded.Time
		}
		for _, t := range pod.Spec.Tolerations {
			if taint.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil && (t.Key == "" || t.Key == taint.Key) &&
				(t.Effect == "" || t.Effect == taint.Effect) && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value) {
				add(since.Add(time.Duration(*t.TolerationSeconds)*time.Second), false, "a pod of %s in %s no longer tolerates the taint %s of %s",
					l.owner(pod), pod.Namespace, taint.Key, pod.Spec.NodeName)
			}
		}
	}
}

// minReady is for how long pods must be ready to be available, by NAMESPACE/OWNER.
func (l *ledger) minReady(ctx context.Context) (map[string]time.Duration, error) {
	of := map[string]time.Duration{}
	add := func(kind string, meta *metav1.ObjectMeta, seconds int32) {
		of[meta.Namespace+"/"+kind+"/"+meta.Name] = time.Duration(seconds) * time.Second
	}
	apps, all := l.fork.client.AppsV1(), metav1.ListOptions{}
	deployments, err := apps.Deployments("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		add("deployment", &deployments.Items[i].ObjectMeta, deployments.Items[i].Spec.MinReadySeconds)
	}
	sets, err := apps.StatefulSets("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		add("statefulset", &sets.Items[i].ObjectMeta, sets.Items[i].Spec.MinReadySeconds)
	}
	daemons, err := apps.DaemonSets("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range daemons.Items {
		add("daemonset", &daemons.Items[i].ObjectMeta, daemons.Items[i].Spec.MinReadySeconds)
	}
	return of, nil
}

// jobs are deadlines of Jobs, and when those are removed that are over.
func (l *ledger) jobs(ctx context.Context, add adder) error {
	jobs, err := l.fork.client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		ended := jobEnd(job)
		switch {
		case ended.IsZero() && job.Status.StartTime != nil && job.Spec.ActiveDeadlineSeconds != nil:
			add(job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second), false,
				"the deadline of job/%s in %s", job.Name, job.Namespace)
		case !ended.IsZero() && job.Spec.TTLSecondsAfterFinished != nil:
			add(ended.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished)*time.Second), false, "job/%s in %s is removed", job.Name, job.Namespace)
		}
	}
	return nil
}

// jobEnd is when a Job ended; zero: it has not.
func jobEnd(job *batchv1.Job) time.Time {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// retries is for how long more nothing must change: as long as a loop waits at most that was refused something, or whose pods failed.
func (l *ledger) retries() time.Duration {
	if len(l.answer.Quotas)+len(l.answer.Refused) > 0 {
		return reconcile.RetryDelayMax
	}
	for _, pod := range l.pods {
		if pod.Status.Phase == corev1.PodFailed && l.base[pod.UID] == nil {
			return reconcile.RetryDelayMax
		}
	}
	return 0
}
