package deployment

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// The reasons that clients such as kubectl rollout status know.
const (
	reasonCreated      = "NewReplicaSetCreated"
	reasonFound        = "FoundNewReplicaSet"
	reasonUpdated      = "ReplicaSetUpdated"
	reasonAvailable    = "NewReplicaSetAvailable"
	reasonTimedOut     = "ProgressDeadlineExceeded"
	reasonPaused       = "DeploymentPaused"
	reasonResumed      = "DeploymentResumed"
	reasonCreateFailed = "ReplicaSetCreateError"
)

// progress are the conditions of Deployments.
var progress = conditions.Of(func(c *appsv1.DeploymentCondition) (appsv1.DeploymentConditionType, corev1.ConditionStatus, *metav1.Time) {
	return c.Type, c.Status, &c.LastTransitionTime
})

// status computes the whole status; steady means that the rollout is judged for
// progress too.
func (r *rollout) status(steady bool) {
	s := r.counts()
	s.Conditions = slices.Clone(r.d.Status.Conditions)
	r.judgeAvailable(&s)
	r.judgeFailure(&s)
	switch {
	case !r.hasDeadline():
		s.Conditions = progress.Without(s.Conditions, appsv1.DeploymentProgressing)
	case r.d.DeletionTimestamp != nil:
	case r.judgePaused(&s):
	case steady:
		r.judgeProgress(&s)
	}
	r.todo.status = s
}

// counts sums what the ReplicaSets report.
func (r *rollout) counts() appsv1.DeploymentStatus {
	s := appsv1.DeploymentStatus{ObservedGeneration: r.d.Generation, CollisionCount: r.d.Status.CollisionCount}
	var terminating int32
	for _, rs := range r.all() {
		s.Replicas += rs.Status.Replicas
		s.ReadyReplicas += rs.Status.ReadyReplicas
		s.AvailableReplicas += rs.Status.AvailableReplicas
		if rs.Status.TerminatingReplicas != nil {
			terminating += *rs.Status.TerminatingReplicas
		}
	}
	s.TerminatingReplicas = &terminating
	s.UnavailableReplicas = r.missing()
	if r.current != nil {
		s.UpdatedReplicas = r.current.Status.Replicas
	}
	return s
}

// missing is how many pods are asked for, those of this pass included, and are not available. A status without them would
// show a rollout that has just begun as one that has ended. Each ReplicaSet is counted for itself: pods that it has beyond
// what it asks for are about to stop, and do not make up for those that another one lacks.
func (r *rollout) missing() int32 {
	var n int64
	for _, rs := range r.planned() {
		n += int64(max(0, replicasOf(rs.Spec.Replicas)-rs.Status.AvailableReplicas))
	}
	return int32(min(n, math.MaxInt32))
}

// planned is every ReplicaSet as this pass leaves it.
func (r *rollout) planned() []*appsv1.ReplicaSet {
	sets := slices.Clone(r.all())
	for _, ch := range r.todo.change {
		sets[slices.Index(sets, ch.from)] = ch.to
	}
	if r.todo.create != nil {
		sets = append(sets, r.todo.create)
	}
	return sets
}

func (r *rollout) judgeAvailable(s *appsv1.DeploymentStatus) {
	if s.AvailableReplicas >= r.wish()-r.unavailable {
		r.set(s, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
		return
	}
	r.set(
		s,
		appsv1.DeploymentAvailable,
		corev1.ConditionFalse,
		"MinimumReplicasUnavailable",
		"Deployment does not have minimum availability.",
	)
}

// judgeFailure repeats a ReplicaSet's ReplicaFailure, the current one's first.
func (r *rollout) judgeFailure(s *appsv1.DeploymentStatus) {
	sets := slices.Clone(r.all())
	slices.Reverse(sets)
	for _, rs := range sets {
		if c := conditions.ReplicaSets.Find(rs.Status.Conditions, appsv1.ReplicaSetReplicaFailure); c != nil {
			r.set(s, appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message)
			return
		}
	}
	s.Conditions = progress.Without(s.Conditions, appsv1.DeploymentReplicaFailure)
}

// judgePaused marks pausing and resuming, unless the rollout has timed out: that
// verdict stays. It reports whether progress need not be judged.
func (r *rollout) judgePaused(s *appsv1.DeploymentStatus) bool {
	c := progress.Find(s.Conditions, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == reasonTimedOut {
		return r.d.Spec.Paused
	}
	marked := c != nil && c.Reason == reasonPaused
	if r.d.Spec.Paused {
		r.set(s, appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
		return true
	}
	if marked {
		r.set(s, appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
		return true
	}
	return false
}

// judgeProgress compares the counts with the last ones and the clock with the
// deadline.
func (r *rollout) judgeProgress(s *appsv1.DeploymentStatus) {
	c := progress.Find(s.Conditions, appsv1.DeploymentProgressing)
	if r.todo.create != nil {
		r.set(s, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonCreated, fmt.Sprintf("Created new replica set %q", r.todo.create.Name))
		if !r.complete(*s) {
			return
		}
		c = progress.Find(s.Conditions, appsv1.DeploymentProgressing)
	}
	if c == nil && r.current == nil {
		return
	}
	if c == nil {
		r.set(s, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonFound, fmt.Sprintf("Found new replica set %q", r.current.Name))
		c = progress.Find(s.Conditions, appsv1.DeploymentProgressing)
	}
	if s.Replicas == s.UpdatedReplicas && c.Reason == reasonAvailable {
		return
	}
	switch {
	case r.complete(*s):
		r.set(s, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonAvailable, r.subject()+" has successfully progressed.")
		return
	case progressed(r.d.Status, *s):
		r.restamp(s, r.subject()+" is progressing.")
	case r.overdue(c):
		r.set(s, appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, r.subject()+" has timed out progressing.")
		return
	}
	c = progress.Find(s.Conditions, appsv1.DeploymentProgressing)
	if c.Reason != reasonTimedOut && c.Reason != reasonAvailable {
		r.todo.again = max(time.Second, c.LastUpdateTime.Add(r.deadline()).Sub(r.now)+time.Second)
	}
}

// subject names what progresses: the current ReplicaSet, which this pass may make, or before it exists the Deployment.
func (r *rollout) subject() string {
	if r.todo.create != nil {
		return fmt.Sprintf("ReplicaSet %q", r.todo.create.Name)
	}
	if r.current == nil {
		return fmt.Sprintf("Deployment %q", r.d.Name)
	}
	return fmt.Sprintf("ReplicaSet %q", r.current.Name)
}

// complete reports whether all wished pods are of the current template and
// available, and nothing else is left.
func (r *rollout) complete(s appsv1.DeploymentStatus) bool {
	return s.UpdatedReplicas == r.wish() && s.Replicas == r.wish() && s.AvailableReplicas == r.wish()
}

// progressed reports whether any count moved in the right direction.
func progressed(before, after appsv1.DeploymentStatus) bool {
	oldBefore, oldAfter := before.Replicas-before.UpdatedReplicas, after.Replicas-after.UpdatedReplicas
	return after.UpdatedReplicas > before.UpdatedReplicas || oldAfter < oldBefore ||
		after.ReadyReplicas > before.ReadyReplicas || after.AvailableReplicas > before.AvailableReplicas
}

func (r *rollout) hasDeadline() bool {
	s := r.d.Spec.ProgressDeadlineSeconds
	return s != nil && *s != math.MaxInt32
}

func (r *rollout) deadline() time.Duration {
	return time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second
}

func (r *rollout) overdue(c *appsv1.DeploymentCondition) bool {
	if c.Reason == reasonAvailable {
		return false
	}
	return c.Reason == reasonTimedOut || r.now.Sub(c.LastUpdateTime.Time) > r.deadline()
}

// set sets a condition unless it already says so; its transition time moves
// only with its status.
func (r *rollout) set(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	if c := progress.Find(s.Conditions, t); c != nil && c.Status == status && c.Reason == reason {
		return
	}
	next := appsv1.DeploymentCondition{Type: t, Status: status, Reason: reason, Message: message, LastUpdateTime: metav1.NewTime(r.now)}
	s.Conditions = progress.SetLast(s.Conditions, progress.Dated(s.Conditions, next, r.now))
}

// restamp says that the rollout moves and moves the start of its deadline.
func (r *rollout) restamp(s *appsv1.DeploymentStatus, message string) {
	r.set(s, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, message)
	c := progress.Find(s.Conditions, appsv1.DeploymentProgressing)
	c.LastUpdateTime, c.Message = metav1.NewTime(r.now), message
}
