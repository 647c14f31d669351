package eviction

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// reasonThresholdMet is upstream's, of an event on the Node.
const reasonThresholdMet = "EvictionThresholdMet"

// observe brings the conditions up to date. It returns the thresholds for which something has to be done.
func (e *evictor) observe(ctx context.Context) (Observations, Layout, []Threshold) {
	if len(e.Policy.Thresholds) == 0 {
		return nil, Layout{}, nil
	}
	seen, layout, err := e.Observe(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.Logger.Warn("cannot see all that the machine has left", "err", err)
		}
	}
	due := e.memory.look(e.Policy, seen, time.Now())
	if e.Conditions.set(e.memory.seen) {
		e.Changed()
	}
	return seen, layout, due
}

// relieve does something about the first threshold: for disks it removes what no pod needs and, if that is not enough, or for
// anything else, it evicts the first pod that may go.
func (e *evictor) relieve(ctx context.Context, due []Threshold, seen Observations, layout Layout) []types.UID {
	t := due[0]
	k, _ := kindOf(t.Signal)
	e.Events.Eventf(e.node(), corev1.EventTypeWarning, reasonThresholdMet, "Attempting to reclaim %s", k.resource)
	if reclaimable(t.Signal, layout) && e.reclaim(ctx) {
		e.Logger.Info("freed enough without evicting pods", "signal", t.Signal)
		return nil
	}
	pods := slices.DeleteFunc(e.Pods.Active(), critical)
	u := e.measure(ctx, pods, k)
	list := u.candidates(pods, t.Signal, layout)
	rank(list, k.resource)
	for _, c := range list {
		grace := e.Policy.grace(t, c.pod)
		why := status.Rejection{Reason: events.Evicted, Message: message(t, seen, c.pod, u), GraceSeconds: &grace, Disrupted: true}
		if e.Pods.Evict(c.pod.UID, why) {
			e.Logger.Warn("evicted a pod", "pod", c.pod.Namespace+"/"+c.pod.Name, "signal", t.Signal)
			return []types.UID{c.pod.UID}
		}
	}
	e.Logger.Warn("a threshold is crossed, and there is no pod to evict", "signal", t.Signal)
	return nil
}

// reclaimable: removing images and dead containers frees something of the signal.
func reclaimable(s Signal, l Layout) bool {
	switch s {
	case ImageFsAvailable, ImageFsInodesFree:
		return true
	case NodeFsAvailable, NodeFsInodesFree:
		return !l.ImagesApart || l.LayersWithPods
	default:
		return false
	}
}

// reclaim reports whether no threshold is crossed any more, the minimum to reclaim included.
func (e *evictor) reclaim(ctx context.Context) bool {
	if err := e.Reclaim(ctx); err != nil {
		e.Logger.Warn("cannot remove all that no pod needs", "err", err)
	}
	seen, _, err := e.Observe(ctx)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(e.Policy.Thresholds, func(t Threshold) bool { return t.crossed(seen, true) })
}

// measure looks at what pods use of the kind that is short. What cannot be measured is left out.
func (e *evictor) measure(ctx context.Context, pods []*corev1.Pod, k kind) usage {
	u := usage{files: map[types.UID]Usage{}}
	if k.condition != corev1.NodeDiskPressure {
		live, err := e.Live(ctx)
		if err != nil {
			e.Logger.Warn("cannot see what pods use", "err", err)
		}
		u.live = live
		return u
	}
	for _, pod := range pods {
		use, err := e.Measure(ctx, pod)
		if err != nil {
			e.Logger.Warn("cannot measure what a pod has on the disk", "pod", pod.Namespace+"/"+pod.Name, "err", err)
			continue
		}
		u.files[pod.UID] = use
	}
	return u
}

// grace is how many seconds pod gets to end.
func (p Policy) grace(t Threshold, pod *corev1.Pod) int64 {
	if t.hard() {
		return graceAtOnce
	}
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(p.MaxGraceSeconds, *own)
	}
	return p.MaxGraceSeconds
}

func (e *evictor) node() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: e.NodeName, UID: types.UID(e.NodeName)}
}
