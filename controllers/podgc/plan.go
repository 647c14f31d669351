package podgc

import (
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

// plan picks the pods to end; missing says since when a node that pods name has
// not been in the cache. It is pure.
func plan(all []*corev1.Pod, nodes map[string]*corev1.Node, missing map[string]time.Time, now time.Time) []victim {
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
		case podstate.Finished(p) && p.DeletionTimestamp == nil:
			finished = append(finished, p)
		}
	}
	slices.SortFunc(finished, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	for _, p := range finished[:max(0, len(finished)-finishedLimit)] {
		out = append(out, victim{p, surplus})
	}
	return out
}

func isOrphaned(p *corev1.Pod, nodes map[string]*corev1.Node, missing map[string]time.Time, now time.Time) bool {
	if p.Spec.NodeName == "" || nodes[p.Spec.NodeName] != nil {
		return false
	}
	if _, _, ofServer := parts.Of(p); ofServer {
		return false // a server is no node; controllers/serverpods ends it
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
