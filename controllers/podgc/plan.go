package podgc

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
	"github.com/setpoint-io/setpoint/internal/parts"
)

// reason is why a pod has to end.
type reason int

const (
	// surplus: it has finished, and too many have.
	surplus reason = iota
	// orphaned: its node is gone.
	orphaned
	// unplaced: it was deleted before it was placed.
	unplaced
	// outOfService: an administrator vouches that its node is off.
	outOfService
)

// victim is one pod to end.
type victim struct {
	pod *corev1.Pod
	why reason
}

// plan picks the pods to end, so that at most keep finished ones stay; missing says since when a node that pods name has
// not been in the cache. It is pure.
func plan(all []*corev1.Pod, nodes map[string]*corev1.Node, missing map[string]time.Time, keep int, now time.Time) []victim {
	var out []victim
	var finished []*corev1.Pod
	for _, p := range all {
		switch {
		case isOrphaned(p, nodes, missing, now):
			out = append(out, victim{p, orphaned})
		case p.DeletionTimestamp != nil && p.Spec.NodeName == "":
			out = append(out, victim{p, unplaced})
		case p.DeletionTimestamp != nil && isOutOfService(nodes[p.Spec.NodeName]):
			out = append(out, victim{p, outOfService})
		}
		if podstate.Finished(p) {
			finished = append(finished, p)
		}
	}
	slices.SortFunc(finished, compareWorth)
	for _, p := range finished[:max(0, len(finished)-keep)] {
		if !ends(p) {
			out = append(out, victim{p, surplus})
		}
	}
	return out
}

// compareWorth is negative when a goes before b: evicted pods first, as no controller counts on them, then the older.
func compareWorth(a, b *corev1.Pod) int {
	return cmp.Or(
		podstate.CompareBool(!isEvicted(a), !isEvicted(b)),
		a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Namespace, b.Namespace),
	)
}

func isEvicted(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted"
}

// ends is true of a pod that was deleted without grace already: only finalizers keep it.
func ends(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

func isOrphaned(p *corev1.Pod, nodes map[string]*corev1.Node, missing map[string]time.Time, now time.Time) bool {
	if p.Spec.NodeName == "" || nodes[p.Spec.NodeName] != nil {
		return false
	}
	if _, _, ofServer := parts.Of(p); ofServer {
		return false // a server is no node; server/serverpods ends it
	}
	since, known := missing[p.Spec.NodeName]
	return known && now.Sub(since) >= orphanPatience
}

// isOutOfService asks for both the administrator's taint and a node that does
// not report ready: the taint on a living node is a mistake.
func isOutOfService(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	return tainted && !conditions.Nodes.Is(node.Status.Conditions, corev1.NodeReady, corev1.ConditionTrue)
}
