package scheduler

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/points"
)

// queueName is the queue's name in reports and metrics. It stands for the pods that are to be tried now; those that are
// parked or in backoff do not wait for the scheduler.
const queueName = "active"

// name is the pod's in reports.
func (e *entry) name() string { return e.pod.Namespace + "/" + e.pod.Name }

// keyOf names the pod of a pass, and does not hold it.
func keyOf(pod *corev1.Pod) func() string {
	name := pod.Namespace + "/" + pod.Name
	return func() string { return name }
}

// count tells the numbers that the entry is somewhere else now: that it waits, or no longer; that it is worked on, or no longer. A
// pod that goes while it waits counts as one that was taken.
func (q *queue) count(e *entry) {
	waits := e.where == active || e.where == woken
	switch now := q.clock.Now(); {
	case waits && e.waits == nil:
		e.waits = q.order.PushBack(now)
		q.numbers.Queued(now)
	case !waits && e.waits != nil:
		since := q.order.Remove(e.waits).(time.Time)
		e.waits = nil
		q.numbers.Taken(now.Sub(since), q.oldest())
	}
	switch {
	case e.where == inFlight && e.worked == nil:
		e.worked = q.numbers.Working(q.clock.Now(), e.name)
	case e.where != inFlight && e.worked != nil:
		e.worked(q.clock.Now())
		e.worked = nil
	}
}

// oldest is since when the first of the pods waits that are to be tried now; zero: there is none.
func (q *queue) oldest() time.Time {
	if first := q.order.Front(); first != nil {
		return first.Value.(time.Time)
	}
	return time.Time{}
}

// What brings pods to a queue, besides events; the labels are upstream's.
const (
	podAdded      = "UnscheduledPodAdd"
	podUpdated    = "TargetPodUpdate"
	backoffOver   = "BackoffComplete"
	backoffEnded  = "PopFromBackoffQ"
	attemptFailed = "ScheduleAttemptFailure"
	parkedTooLong = "UnschedulableTimeout"
)

// queueNames are upstream's of the places where pods wait.
var queueNames = [...]string{active: queueName, woken: "backoff", failed: "backoff", parked: "unschedulable"}

// came counts a pod that waits in another place now.
func (q *queue) came(where whereabouts, cause string) {
	q.series.Incoming.WithLabelValues(queueNames[where], cause).Inc()
}

// succeeded says that the last attempt was not refused.
func (q *queue) succeeded(e *entry) {
	e.refused = 0
	q.numbers.Succeeded(e.name)
}

// pending are the pods that have no node, by upstream's names: what is woken rests in backoff unless there is nothing else to do. Pods
// with scheduling gates are not in the queue.
func (q *queue) pending() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return map[string]int{
		"active":        q.heaps[active].Len(),
		"backoff":       q.heaps[woken].Len() + q.heaps[failed].Len(),
		"unschedulable": len(q.parked),
	}
}

// durations are those of a profile's extension points.
func (s *scheduler) durations(profile string) points.Durations {
	return points.Durations{Of: s.series.Points, Profile: profile}
}
