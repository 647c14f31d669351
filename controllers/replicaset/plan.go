package replicaset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// burstLimit is the largest number of pods created or deleted in one pass.
const burstLimit = 500

// observed is the world around one ReplicaSet.
type observed struct {
	// pods are controlled by the ReplicaSet and match its selector.
	pods []*corev1.Pod
	// related are pods of its sibling ReplicaSets; empty when none of its own can
	// be surplus.
	related []*corev1.Pod
	// settled is false while the cache lags behind our own creations: counting
	// then would create twice.
	settled bool
	// deleting are pods whose deletion we asked for and do not see yet.
	deleting map[types.UID]bool
}

// todo is what one pass does.
type todo struct {
	create int
	remove []*corev1.Pod
	status appsv1.ReplicaSetStatus
	// again is when a ready pod becomes available; 0 for never.
	again time.Duration
}

// plan decides what brings the number of pods to the wish. It is pure.
func plan(rs *appsv1.ReplicaSet, seen observed, now time.Time) todo {
	var active []*corev1.Pod
	for _, p := range seen.pods {
		if podstate.Active(p) && !seen.deleting[p.UID] {
			active = append(active, p)
		}
	}
	t := todo{}
	t.status, t.again = status(rs, seen.pods, active, now)
	if !seen.settled { // there may be more pods than are counted here: whoever waits for this generation has to wait on
		t.status.ObservedGeneration = min(rs.Status.ObservedGeneration, rs.Generation)
	}
	if rs.DeletionTimestamp != nil || !seen.settled {
		return t
	}
	wish := int(wished(rs))
	switch {
	case len(active) < wish:
		t.create = min(wish-len(active), burstLimit)
	case len(active) > wish:
		t.remove = surplus(active, seen.related, min(len(active)-wish, burstLimit), now)
	}
	return t
}

// wished is spec.replicas with its default.
func wished(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}

// status counts the pods; the second result is when the next ready pod becomes
// available.
func status(rs *appsv1.ReplicaSet, all, active []*corev1.Pod, now time.Time) (appsv1.ReplicaSetStatus, time.Duration) {
	var s appsv1.ReplicaSetStatus
	var again time.Duration
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	minReady := time.Duration(rs.Spec.MinReadySeconds) * time.Second
	for _, p := range active {
		s.Replicas++
		if template.Matches(labels.Set(p.Labels)) {
			s.FullyLabeledReplicas++
		}
		wait, ready := podstate.AvailableIn(p, minReady, now)
		if !ready {
			continue
		}
		s.ReadyReplicas++
		if wait == 0 {
			s.AvailableReplicas++
		} else if again == 0 || wait < again {
			again = wait
		}
	}
	var terminating int32
	for _, p := range all {
		if podstate.Terminating(p) {
			terminating++
		}
	}
	s.TerminatingReplicas = &terminating
	s.ObservedGeneration = rs.Generation
	s.Conditions = slices.Clone(rs.Status.Conditions)
	return s, again
}
