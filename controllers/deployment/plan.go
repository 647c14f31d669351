package deployment

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// observed is the world around one Deployment.
type observed struct {
	// sets are the ReplicaSets that the Deployment controls.
	sets []*appsv1.ReplicaSet
	// oldPods counts pods of old ReplicaSets that may still run; only Recreate
	// asks.
	oldPods int
}

// todo is what one pass does, in this order.
type todo struct {
	// create is the new ReplicaSet, or nil.
	create *appsv1.ReplicaSet
	// change are ReplicaSets to update: scaled, annotated or both.
	change []change
	// remove are ReplicaSets beyond the history limit.
	remove []*appsv1.ReplicaSet
	// revision is the value of the Deployment's revision annotation; empty
	// leaves it.
	revision string
	// status is what the status should be.
	status appsv1.DeploymentStatus
	// again is when the progress deadline has to be judged; 0 for never.
	again time.Duration
	// selectsAll says that the selector is empty, which only gets an event.
	selectsAll bool
}

// change is one ReplicaSet as it is and as it should be.
type change struct {
	from, to *appsv1.ReplicaSet
}

// rollout is the state that the plan functions share.
type rollout struct {
	d   *appsv1.Deployment
	now time.Time
	// current is the ReplicaSet of the present template; nil before it exists.
	current *appsv1.ReplicaSet
	// old are the others, oldest first.
	old []*appsv1.ReplicaSet
	// surge and unavailable are the strategy's bounds in pods.
	surge, unavailable int32
	oldPods            int
	todo               todo
}

// plan decides the next step of a Deployment. It is pure.
func plan(d *appsv1.Deployment, seen observed, now time.Time) todo {
	r := newRollout(d, seen, now)
	if selectsAll(d) {
		r.todo.selectsAll = true
		r.todo.status = *d.Status.DeepCopy()
		r.todo.status.ObservedGeneration = d.Generation
		return r.todo
	}
	steady, waits := true, false
	switch {
	case d.DeletionTimestamp != nil:
		steady = false
	case d.Spec.Paused:
		r.refresh()
		r.resize()
		r.trimHistory()
		steady = false
	case r.scaling():
		r.refresh()
		r.resize()
		steady = r.rollsBack()
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		r.refresh()
		waits = r.recreate()
	default:
		r.revise()
		r.roll()
	}
	if steady && !waits && len(r.todo.change) == 0 && r.todo.create == nil && r.complete(r.counts()) {
		r.trimHistory()
	}
	r.status(steady)
	return r.todo
}

func selectsAll(d *appsv1.Deployment) bool {
	s := d.Spec.Selector
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

func newRollout(d *appsv1.Deployment, seen observed, now time.Time) *rollout {
	r := &rollout{d: d, now: now, oldPods: seen.oldPods}
	r.surge, r.unavailable = bounds(d)
	r.current = findNew(d, seen.sets)
	for _, rs := range oldestFirst(seen.sets) {
		if r.current == nil || rs.UID != r.current.UID {
			r.old = append(r.old, rs)
		}
	}
	return r
}

// wish is spec.replicas with its default.
func (r *rollout) wish() int32 { return replicasOf(r.d.Spec.Replicas) }

// all is every ReplicaSet, the current one last.
func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.current == nil {
		return r.old
	}
	return append(r.old[:len(r.old):len(r.old)], r.current)
}

// roll takes one step of a rolling update: first up, then down, never both in
// one pass, so that each step is judged on what the last one led to. A ReplicaSet
// that gets its revision grows in the same write: between two, the status would
// show the old pods as all that is wanted.
func (r *rollout) roll() {
	if r.current == nil {
		return
	}
	if n := r.rollUp(); n == replicasOf(r.current.Spec.Replicas) {
		r.rollDown()
	} else {
		r.scaleTo(r.current, n)
	}
}

// rollUp is how many replicas the current ReplicaSet may have now. Whether it grows now or once no other may have more pods
// than it asks for, nothing shrinks meanwhile: the status would show old pods that stop as ready, and none as missing.
func (r *rollout) rollUp() int32 {
	have, total := replicasOf(r.current.Spec.Replicas), sumSpec(r.all())
	if have >= r.wish() {
		return r.wish()
	}
	room := r.wish() + r.surge - total
	return have + max(0, min(room, r.wish()-have))
}

// mayHaveMore tells whether another ReplicaSet may have more pods than it asks for now: its controller has not seen its
// last change, or has not deleted enough. As long as that is so, pods are added nowhere, or there would be more
// than replicas + maxSurge for a moment. Upstream counts on what was asked for.
func (r *rollout) mayHaveMore(than *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(r.all(), func(rs *appsv1.ReplicaSet) bool {
		if than != nil && rs.UID == than.UID {
			return false
		}
		return rs.Status.ObservedGeneration < rs.Generation || rs.Status.Replicas > replicasOf(rs.Spec.Replicas)
	})
}

// rollDown shrinks old ReplicaSets: pods that are not available first, as their
// loss costs nothing, then available ones as far as the rest can do without.
func (r *rollout) rollDown() {
	if sumSpec(r.old) == 0 {
		return
	}
	least := r.wish() - r.unavailable
	current := replicasOf(r.current.Spec.Replicas)
	notYet := max(0, current-r.current.Status.AvailableReplicas)
	room := sumSpec(r.all()) - least - notYet
	if room <= 0 {
		return
	}
	target := map[*appsv1.ReplicaSet]int32{}
	var dropped int32
	for _, rs := range r.old {
		have := replicasOf(rs.Spec.Replicas)
		drop := max(0, min(room-dropped, have-rs.Status.AvailableReplicas))
		target[rs] = have - drop
		dropped += drop
	}
	spare := min(room-dropped, sumAvailable(r.all())-least)
	for _, rs := range r.old {
		drop := max(0, min(spare, target[rs]))
		target[rs] -= drop
		spare -= drop
	}
	for _, rs := range r.old {
		r.scaleTo(rs, target[rs])
	}
}

// recreate stops everything old, waits until it has ended, then starts the new. While it waits, the old ReplicaSets are
// needed: their pods are found by them.
func (r *rollout) recreate() (waits bool) {
	switch {
	case sumSpec(r.old) > 0:
		for _, rs := range r.old {
			r.scaleTo(rs, 0)
		}
	case r.oldPods > 0: // they have to end first
		return true
	case r.current == nil:
		r.revise()
	default:
		r.scaleTo(r.current, r.wish())
	}
	return false
}
