package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// The words that conditions carry; those of a silent node are upstream's.
const (
	// GossipDegraded is the condition of a node that reports but that gossip
	// does not see.
	GossipDegraded corev1.NodeConditionType = "GossipDegraded"

	reasonSilent       = "NodeStatusUnknown"
	messageSilent      = "Kubelet stopped posting node status."
	reasonNeverSpoke   = "NodeStatusNeverUpdated"
	messageNeverSpoke  = "Kubelet never posted node status."
	reasonShutdown     = "NodeShutdown"
	messageShutdown    = "The node agent was shut down and is expected back."
	reasonGossipLost   = "GossipUnreachable"
	messageGossipLost  = "The node's session is alive, but its peers do not reach it."
	reasonGossipBack   = "GossipReachable"
	messageGossipBack  = "The node's peers reach it."
	unschedulableTaint = corev1.TaintNodeUnschedulable
)

// judged is the node's conditions under a verdict. It is pure; a list that
// needs no change comes back equal.
func judged(node *corev1.Node, v verdict, now time.Time) []corev1.NodeCondition {
	out := slices.Clone(node.Status.Conditions)
	switch v.state {
	case down:
		out = silence(out, now)
	case draining:
		out = set(out, corev1.NodeReady, corev1.ConditionFalse, reasonShutdown, messageShutdown, now)
	}
	if v.state == degraded {
		return set(out, GossipDegraded, corev1.ConditionTrue, reasonGossipLost, messageGossipLost, now)
	}
	if conditions.Nodes.Find(out, GossipDegraded) != nil {
		return set(out, GossipDegraded, corev1.ConditionFalse, reasonGossipBack, messageGossipBack, now)
	}
	return out
}

// silence marks everything that the node itself would report as unknown.
func silence(list []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		switch c := conditions.Nodes.Find(list, t); {
		case c == nil:
			list = set(list, t, corev1.ConditionUnknown, reasonNeverSpoke, messageNeverSpoke, now)
		case c.Status != corev1.ConditionUnknown:
			list = set(list, t, corev1.ConditionUnknown, reasonSilent, messageSilent, now)
		}
	}
	return list
}

// set returns the list with one condition changed; its transition time moves
// only with its status, its heartbeat is the node's own.
func set(
	list []corev1.NodeCondition,
	t corev1.NodeConditionType,
	status corev1.ConditionStatus,
	reason, message string,
	now time.Time,
) []corev1.NodeCondition {
	next := corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: message, LastHeartbeatTime: metav1.NewTime(now)}
	if before := conditions.Nodes.Find(list, t); before != nil {
		next.LastHeartbeatTime = before.LastHeartbeatTime
	}
	return conditions.Nodes.Set(list, next, now)
}

// readiness is the status of the Ready condition, Unknown when there is none.
func readiness(list []corev1.NodeCondition) corev1.ConditionStatus {
	if c := conditions.Nodes.Find(list, corev1.NodeReady); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

// reported is whether the node ever posted its readiness itself.
func reported(list []corev1.NodeCondition) bool {
	c := conditions.Nodes.Find(list, corev1.NodeReady)
	return c != nil && c.Reason != reasonNeverSpoke
}

// bad reports whether a node counts as lost for the budget: it is down, or says
// itself that it cannot run pods.
func bad(list []corev1.NodeCondition, v verdict) bool {
	switch v.state {
	case down:
		return true
	case healthy, degraded:
		c := conditions.Nodes.Find(list, corev1.NodeReady)
		return c != nil && c.Status == corev1.ConditionFalse
	default:
		return false
	}
}

// taints is the node's taints under a verdict; others' taints stay. evict says
// that the hold-down is over and the budget was spent. It is pure; a list that
// needs no change comes back equal.
func taints(node *corev1.Node, list []corev1.NodeCondition, v verdict, evict bool, now time.Time) []corev1.Taint {
	want := wanted(node, list, v, evict)
	var out []corev1.Taint
	for _, t := range node.Spec.Taints {
		id := taintID{t.Key, t.Effect}
		if !ours(id) {
			out = append(out, t)
			continue
		}
		if i := slices.Index(want, id); i >= 0 {
			out = append(out, t)
			want = slices.Delete(want, i, i+1)
		}
	}
	for _, id := range want {
		stamp := metav1.NewTime(now)
		out = append(out, corev1.Taint{Key: id.key, Effect: id.effect, TimeAdded: &stamp})
	}
	return out
}

type taintID struct {
	key    string
	effect corev1.TaintEffect
}

// wanted lists the system taints that the node should have.
func wanted(node *corev1.Node, list []corev1.NodeCondition, v verdict, evict bool) []taintID {
	var want []taintID
	if key := closed(list, v); key != "" {
		want = append(want, taintID{key, corev1.TaintEffectNoSchedule})
		if keepsNoExecute(node, list, v) || evict {
			want = append(want, taintID{key, corev1.TaintEffectNoExecute})
		}
	}
	for _, p := range pressures() {
		if c := conditions.Nodes.Find(list, p.condition); c != nil && c.Status == corev1.ConditionTrue {
			want = append(want, taintID{p.taint, corev1.TaintEffectNoSchedule})
		}
	}
	if node.Spec.Unschedulable {
		want = append(want, taintID{unschedulableTaint, corev1.TaintEffectNoSchedule})
	}
	return want
}

// closed is the taint that keeps new pods away, or none.
func closed(list []corev1.NodeCondition, v verdict) string {
	switch {
	case v.state == suspect || v.state == down:
		return corev1.TaintNodeUnreachable
	case v.state == draining || readiness(list) == corev1.ConditionFalse || conditions.Nodes.Find(list, corev1.NodeReady) == nil:
		return corev1.TaintNodeNotReady
	case readiness(list) == corev1.ConditionUnknown:
		return corev1.TaintNodeUnreachable
	default:
		return ""
	}
}

// keepsNoExecute reports whether a NoExecute taint that is there stays: it was
// spent from the budget once and lasts until the node is heard of again.
func keepsNoExecute(node *corev1.Node, list []corev1.NodeCondition, v verdict) bool {
	if v.state == draining || v.state != down && v.state != suspect && !bad(list, v) {
		return false
	}
	return hasNoExecute(node)
}

func hasNoExecute(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
	})
}

// ours reports whether this controller owns the taint.
func ours(id taintID) bool {
	switch id.key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return id.effect == corev1.TaintEffectNoSchedule || id.effect == corev1.TaintEffectNoExecute
	case unschedulableTaint:
		return id.effect == corev1.TaintEffectNoSchedule
	}
	return id.effect == corev1.TaintEffectNoSchedule &&
		slices.ContainsFunc(pressures(), func(p pressure) bool { return p.taint == id.key })
}

// pressure is a condition that closes a node to new pods.
type pressure struct {
	condition corev1.NodeConditionType
	taint     string
}

func pressures() []pressure {
	return []pressure{
		{corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure},
		{corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure},
		{corev1.NodePIDPressure, corev1.TaintNodePIDPressure},
		{corev1.NodeNetworkUnavailable, corev1.TaintNodeNetworkUnavailable},
	}
}
