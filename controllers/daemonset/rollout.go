package daemonset

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rollout takes the next step towards the present template. It runs only when every
// node has the pods that it should have.
func (p *pass) rollout() {
	if p.ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return
	}
	desired := 0
	for _, v := range p.verdicts {
		if v.run {
			desired++
		}
	}
	surge, unavailable := bounds(p.ds, desired)
	if surge > 0 {
		p.rolloutAbove(surge, desired)
	} else {
		p.rolloutBelow(unavailable)
	}
}

// places are the nodes that have a pod or should have one, in order.
func (p *pass) places() []string {
	names := map[string]bool{}
	for node := range p.pods {
		names[node] = true
	}
	for node, v := range p.verdicts {
		if v.run {
			names[node] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// pair is the new and the old living pod of a node; clear is false when there is
// more than one of either, which manage clears up first.
func (p *pass) pair(node string) (fresh, old *corev1.Pod, clear bool) {
	for _, pod := range p.pods[node] {
		if p.dying(pod) {
			continue
		}
		place := &old
		if current(p.ds, p.seen.hash, pod) {
			place = &fresh
		}
		if *place != nil {
			return nil, nil, false
		}
		*place = pod
	}
	return fresh, old, true
}

// rolloutBelow deletes old pods, at most so many that no more nodes than
// unavailable lack an available pod. Old pods that are not available are deleted
// at once: nobody misses them.
func (p *pass) rolloutBelow(unavailable int) {
	var replace, candidates []*corev1.Pod
	for _, node := range p.places() {
		fresh, old, clear := p.pair(node)
		switch {
		case !clear || (fresh == nil) == (old == nil):
			unavailable-- // manage has work here
		case fresh != nil:
			if !p.available(fresh) {
				unavailable--
			}
		case !p.available(old):
			replace = append(replace, old)
			unavailable--
		default:
			candidates = append(candidates, old)
		}
	}
	allowed := max(0, min(unavailable, len(candidates)))
	p.todo.remove = slices.Concat(p.todo.remove, replace, candidates[:allowed])
}

// rolloutAbove creates new pods beside old ones, at most surge beside available
// ones, and deletes an old pod once its new one is available. It also empties
// nodes that fit no longer, as far as enough pods are available elsewhere.
func (p *pass) rolloutAbove(surge, desired int) {
	var beside, candidates []string
	var misplaced []*corev1.Pod
	available := 0
	for _, node := range p.places() {
		fresh, old, clear := p.pair(node)
		if !clear {
			surge--
			continue
		}
		serving := old
		if serving == nil {
			serving = fresh
		}
		if serving != nil && p.available(serving) {
			available++
		}
		v, exists := p.verdicts[node]
		switch {
		case old == nil || !exists:
			// manage creates what is missing; pods of a node that is gone are garbage
		case fresh != nil && p.available(fresh):
			p.todo.remove = append(p.todo.remove, old)
		case fresh != nil:
			surge--
		case !v.run && p.available(old):
			misplaced = append(misplaced, old)
		case !v.run:
			p.todo.remove = append(p.todo.remove, old)
		case p.available(old):
			candidates = append(candidates, node)
		default:
			beside = append(beside, node)
		}
	}
	spare := max(0, min(available-desired, len(misplaced)))
	p.todo.remove = append(p.todo.remove, misplaced[:spare]...)
	allowed := max(0, min(surge, len(candidates)))
	p.todo.create = slices.Concat(p.todo.create, beside, candidates[:allowed])
}

// surges tells whether a node may have two pods during a rollout.
func (p *pass) surges() bool {
	surge, _ := bounds(p.ds, 1)
	return surge > 0
}

// bounds resolves maxSurge and maxUnavailable for a number of nodes, rounded up.
// They are never both 0 if there are nodes, for then nothing could move.
func bounds(ds *appsv1.DaemonSet, nodes int) (surge, unavailable int) {
	strategy := ds.Spec.UpdateStrategy
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return 0, 0
	}
	if r := strategy.RollingUpdate; r != nil {
		surge, unavailable = scaled(r.MaxSurge, nodes), scaled(r.MaxUnavailable, nodes)
	}
	if nodes > 0 && surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func scaled(v *intstr.IntOrString, nodes int) int {
	if v == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, nodes, true)
	if err != nil {
		return 0 // the API refuses such values
	}
	return n
}
