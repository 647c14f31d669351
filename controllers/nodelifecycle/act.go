package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/topology"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// reasonEviction is of events about pods that have to leave their node for a taint.
const reasonEviction = "TaintManagerEviction"

// write writes the node's conditions and taints where they differ, and returns
// the node as it is then. Taints first: they keep new pods away.
func (c *controller) write(
	ctx context.Context,
	node *corev1.Node,
	list []corev1.NodeCondition,
	taints []corev1.Taint,
) (*corev1.Node, error) {
	was := node
	if !apiequality.Semantic.DeepEqual(node.Spec.Taints, taints) {
		next := node.DeepCopy()
		next.Spec.Taints = taints
		out, err := c.env.Client.CoreV1().Nodes().Update(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			return nil, fmt.Errorf("write taints: %w", err)
		}
		c.countEviction(node, out)
		node = out
	}
	if !apiequality.Semantic.DeepEqual(was.Status.Conditions, list) {
		next := node.DeepCopy()
		next.Status.Conditions = list
		out, err := c.env.Client.CoreV1().Nodes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			return nil, fmt.Errorf("write conditions: %w", err)
		}
		c.tell(was, list)
		node = out
	}
	return node, nil
}

// countEviction counts a Node that got one of the taints of lost Nodes, as upstream counts its Node evictions.
func (c *controller) countEviction(before, after *corev1.Node) {
	lost := func(node *corev1.Node) bool {
		return len(noExecute(node.Spec.Taints, true)) > len(noExecute(node.Spec.Taints, false)) // with ours, and without
	}
	if lost(after) && !lost(before) {
		c.series.NodeEvictions.WithLabelValues(topology.GetZoneKey(after)).Inc()
	}
}

// tell reports what changed as events.
func (c *controller) tell(node *corev1.Node, list []corev1.NodeCondition) {
	if before, after := readiness(node.Status.Conditions), readiness(list); before == corev1.ConditionTrue && after != before {
		// Normal upstream; who looks for warnings wants to see a machine that died.
		c.env.Events.Eventf(node, corev1.EventTypeWarning, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
	}
	if after := conditions.Nodes.Find(list, GossipDegraded); after != nil && after.Status == corev1.ConditionTrue {
		if before := conditions.Nodes.Find(node.Status.Conditions, GossipDegraded); before == nil || before.Status != corev1.ConditionTrue {
			c.env.Events.Event(node, corev1.EventTypeWarning, string(GossipDegraded), messageGossipLost)
		}
	}
}

// tellRegistered tells of a Node that is new, and not of those that were there before this term: a new leader is no news of theirs.
func (c *controller) tellRegistered(node *corev1.Node) {
	if !node.CreationTimestamp.Time.Before(c.began.Truncate(time.Second)) {
		c.env.Events.Eventf(node, corev1.EventTypeNormal, "RegisteredNode", "Node %s event: Registered Node %s in Controller", node.Name, node.Name)
	}
}

// tellRemoved tells of a Node that is gone; without a uid it was never seen here.
func (c *controller) tellRemoved(name string, uid types.UID) {
	if uid == "" {
		return
	}
	gone := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}
	c.env.Events.Eventf(gone, corev1.EventTypeNormal, "RemovingNode", "Node %s event: Removing Node %s from Controller", name, name)
}

// tendPods takes the pods of a lost node out of service and evicts those that
// no longer tolerate their node.
func (c *controller) tendPods(ctx context.Context, node *corev1.Node, v verdict, isBad bool, term, now time.Time) (time.Duration, error) {
	counting := noExecute(node.Spec.Taints, isBad && (v.state != down || v.evict))
	if v.state != down && len(counting) == 0 && !c.anyLeaves(node.Name) {
		return 0, nil
	}
	mine, err := c.pods.ByIndex(byNode, node.Name)
	if err != nil {
		return 0, err
	}
	var errs []error
	if v.state == down {
		for _, p := range mine {
			errs = append(errs, c.unready(ctx, p, now))
		}
	}
	wait, halted := c.budget.halted(now)
	if halted {
		counting = noExecute(counting, false)
	}
	e := evictions(counting, mine, term, now)
	c.tellSpared(node.Name, mine, e, isBad)
	for _, p := range e.due {
		errs = append(errs, c.evict(ctx, p, now))
	}
	return soonest(e.again, wait), errors.Join(errs...)
}

// anyLeaves tells whether pods of the node were going to leave when it was last looked at.
func (c *controller) anyLeaves(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.leaving[node]) > 0
}

// tellSpared tells of pods that were going to leave and need not any more, and remembers those that are going to now. While the node is
// bad nobody is spared: its taint may be one that the cache does not show yet.
func (c *controller) tellSpared(node string, mine []*corev1.Pod, e eviction, isBad bool) {
	c.mu.Lock()
	before := c.leaving[node]
	switch {
	case isBad && before != nil:
		maps.Copy(before, e.waiting)
	case len(e.waiting) > 0:
		c.leaving[node] = e.waiting
	default:
		delete(c.leaving, node)
	}
	c.mu.Unlock()
	for _, p := range mine {
		if !isBad && before[p.UID] && !e.waiting[p.UID] && !slices.Contains(e.due, p) && p.DeletionTimestamp == nil {
			c.env.Events.Eventf(p, corev1.EventTypeNormal, reasonEviction, "Cancelling deletion of Pod %s/%s", p.Namespace, p.Name)
		}
	}
}

// unready marks a pod as not ready, so that its Services stop sending to it.
func (c *controller) unready(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	if !podstate.Ready(pod) {
		return nil
	}
	return c.setPodCondition(ctx, pod, corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now),
		Reason: "NodeLost", Message: "The pod's node does not report.",
	})
}

// evict says why and deletes the pod with its own grace period.
func (c *controller) evict(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	err := c.setPodCondition(ctx, pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint",
	})
	if err != nil {
		return err
	}
	c.env.Events.Eventf(pod, corev1.EventTypeNormal, reasonEviction, "Marking for deletion Pod %s/%s", pod.Namespace, pod.Name)
	err = c.env.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// setPodCondition sets one condition of the pod as it is now, not as the cache
// has it: unready may just have written it.
func (c *controller) setPodCondition(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition) error {
	client := c.env.Client.CoreV1().Pods(pod.Namespace)
	fresh, err := client.Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && fresh.UID != pod.UID {
		return nil
	}
	if err != nil {
		return err
	}
	if conditions.Pods.Is(fresh.Status.Conditions, condition.Type, condition.Status) {
		return nil
	}
	next := fresh.DeepCopy()
	next.Status.Conditions = conditions.Pods.SetLast(next.Status.Conditions, condition)
	if _, err = client.UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write condition %s of pod %s/%s: %w", condition.Type, pod.Namespace, pod.Name, err)
	}
	return nil
}
