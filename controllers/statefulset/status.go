package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// status counts the pods that are there before anything is done.
func (p *planner) status() appsv1.StatefulSetStatus {
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: p.set.Generation,
		CurrentRevision:    p.set.Status.CurrentRevision,
		UpdateRevision:     p.set.Status.UpdateRevision,
		CollisionCount:     new(ptr.Deref(p.set.Status.CollisionCount, 0)),
		Conditions:         p.set.Status.Conditions,
	}
	if p.update != nil {
		s.CurrentRevision, s.UpdateRevision = p.current.Name, p.update.Name
	}
	for _, pod := range p.pods {
		p.count(&s, pod)
	}
	all := int32(wished(p.set))
	if s.UpdatedReplicas == all && s.ReadyReplicas == all && s.Replicas == all { // the rollout is complete
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, s.UpdateRevision
	}
	return s
}

func (p *planner) count(s *appsv1.StatefulSetStatus, pod *corev1.Pod) {
	s.Replicas++
	if pod.Status.Phase == corev1.PodRunning && podstate.Ready(pod) {
		s.ReadyReplicas++
		if wait, _ := podstate.AvailableIn(pod, p.minReady(), p.now); wait == 0 {
			s.AvailableReplicas++
		}
	}
	if pod.DeletionTimestamp != nil {
		return
	}
	if revisionOf(pod) == s.CurrentRevision {
		s.CurrentReplicas++
	}
	if revisionOf(pod) == s.UpdateRevision {
		s.UpdatedReplicas++
	}
}

// nextAvailable is how long it takes until one more of the ready pods is available; 0 if all are.
func (p *planner) nextAvailable() time.Duration {
	next := time.Duration(0)
	for _, pod := range p.pods {
		if wait, ready := podstate.AvailableIn(pod, p.minReady(), p.now); ready && wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next
}
