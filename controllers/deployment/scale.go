package deployment

import (
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// scaling reports whether spec.replicas changed since the ReplicaSets were last
// scaled: then the change is spread over all of them before the rollout goes on.
func (r *rollout) scaling() bool {
	return slices.ContainsFunc(r.active(), r.stale)
}

// stale reports whether the ReplicaSet was last scaled under another wish.
func (r *rollout) stale(rs *appsv1.ReplicaSet) bool {
	n, ok := numberIn(rs, desiredAnnotation)
	return ok && n != r.wish()
}

// active are the ReplicaSets that wish for pods.
func (r *rollout) active() []*appsv1.ReplicaSet {
	return slices.DeleteFunc(slices.Clone(r.all()), func(rs *appsv1.ReplicaSet) bool { return replicasOf(rs.Spec.Replicas) == 0 })
}

// resize brings the number of pods to a changed spec.replicas, also while the
// Deployment is paused or in the middle of a rollout.
func (r *rollout) resize() {
	active := r.active()
	if only := r.activeOrLatest(active); only != nil {
		if r.stale(only) {
			r.resizeTo(only, r.wish())
		} else {
			r.scaleTo(only, r.wish())
		}
		return
	}
	if r.saturated() {
		for _, rs := range r.old {
			r.resizeTo(rs, 0)
		}
		return
	}
	if len(active) > 0 && r.d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		r.spread(active)
	}
}

// activeOrLatest is the ReplicaSet that takes the whole change: the only active
// one or, when none is, the current or newest.
func (r *rollout) activeOrLatest(active []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	switch {
	case len(active) == 1:
		return active[0]
	case len(active) > 1:
		return nil
	case r.current != nil:
		return r.current
	case len(r.old) > 0:
		return r.old[len(r.old)-1]
	}
	return nil
}

// saturated reports whether the current ReplicaSet serves the whole wish.
func (r *rollout) saturated() bool {
	if r.current == nil {
		return false
	}
	n, ok := numberIn(r.current, desiredAnnotation)
	return ok && n == r.wish() && replicasOf(r.current.Spec.Replicas) == r.wish() &&
		r.current.Status.AvailableReplicas == r.wish()
}

// spread adds or takes pods in proportion to each ReplicaSet's size, so that a
// rollout in progress keeps its share of old and new; what rounding leaves goes
// to the first.
func (r *rollout) spread(active []*appsv1.ReplicaSet) {
	allowed := int32(0)
	if r.wish() > 0 {
		allowed = r.wish() + r.surge
	}
	change := allowed - sumSpec(active)
	bySize(active, change >= 0)
	sizes, given := make([]int32, len(active)), int32(0)
	for i, rs := range active {
		share := int32(0)
		if change != given {
			share = clip(r.fraction(rs), change-given)
		}
		sizes[i] = replicasOf(rs.Spec.Replicas) + share
		given += share
	}
	sizes[0] = max(0, sizes[0]+change-given)
	for i, rs := range active {
		r.resizeTo(rs, sizes[i])
	}
}

// bySize sorts the larger first; among equals the newer when growing, the older
// when shrinking.
func bySize(sets []*appsv1.ReplicaSet, growing bool) {
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		if d := int(replicasOf(b.Spec.Replicas)) - int(replicasOf(a.Spec.Replicas)); d != 0 {
			return d
		}
		order := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time)
		if growing {
			return -order
		}
		return order
	})
}

// fraction is the ReplicaSet's share of a change: its size scaled from the
// maximum of pods when it was last scaled to the present maximum.
func (r *rollout) fraction(rs *appsv1.ReplicaSet) int32 {
	have := replicasOf(rs.Spec.Replicas)
	if r.wish() == 0 {
		return -have
	}
	then, ok := numberIn(rs, maxAnnotation)
	if !ok || then == 0 {
		then = r.d.Status.Replicas
	}
	if then == 0 {
		return 0
	}
	scaled := float64(have) * float64(r.wish()+r.surge) / float64(then)
	return int32(min(math.Round(scaled), math.MaxInt32)) - have
}

// clip bounds a share by what remains to be given, which has the same sign.
func clip(share, rest int32) int32 {
	if rest > 0 {
		return max(0, min(share, rest))
	}
	return min(0, max(share, rest))
}

// scaleTo plans n replicas for rs, unless it has them.
func (r *rollout) scaleTo(rs *appsv1.ReplicaSet, n int32) {
	if replicasOf(rs.Spec.Replicas) != n {
		r.resizeTo(rs, n)
	}
}

// resizeTo plans n replicas for rs and records under which wish that was, which may be all that changes. One that would
// grow has to wait until no other has pods that it should not have.
func (r *rollout) resizeTo(rs *appsv1.ReplicaSet, n int32) {
	if n > replicasOf(rs.Spec.Replicas) && r.mayHaveMore(rs) {
		return
	}
	to := rs.DeepCopy()
	to.Spec.Replicas = &n
	r.annotate(to)
	if n == 0 && replicasOf(rs.Spec.Replicas) == 0 {
		return
	}
	r.change(rs, to)
}

func (r *rollout) annotate(rs *appsv1.ReplicaSet) {
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations[desiredAnnotation] = strconv.Itoa(int(r.wish()))
	rs.Annotations[maxAnnotation] = strconv.Itoa(int(r.wish() + r.surge))
}

// change plans an update unless it would change nothing; a second change of the
// same ReplicaSet joins the first.
func (r *rollout) change(from, to *appsv1.ReplicaSet) {
	for i := range r.todo.change {
		if planned := &r.todo.change[i]; planned.from.UID == from.UID {
			planned.to.Spec.Replicas = to.Spec.Replicas
			planned.to.Annotations[desiredAnnotation] = to.Annotations[desiredAnnotation]
			planned.to.Annotations[maxAnnotation] = to.Annotations[maxAnnotation]
			return
		}
	}
	if apiequality.Semantic.DeepEqual(from, to) {
		return
	}
	r.todo.change = append(r.todo.change, change{from, to})
}

func numberIn(rs *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseInt(rs.Annotations[annotation], 10, 32)
	return int32(n), err == nil
}
