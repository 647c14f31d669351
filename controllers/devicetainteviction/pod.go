package devicetainteviction

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// reasonEviction is the reason of the events.
const reasonEviction = "DeviceTaintManagerEviction"

// reconcilePod evicts a pod whose time has come, and comes back for one whose time will.
func (c *controller) reconcilePod(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	pod, err := c.pods.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	v, err := c.view()
	if err != nil {
		return 0, err
	}
	e := v.evictionOf(pod, c.claimIn(pod.Namespace))
	if e == nil {
		c.stay(pod)
		return 0, nil
	}
	if wait := e.when.Sub(c.env.Now()); wait > 0 {
		c.wait(pod.UID)
		return wait, nil
	}
	return 0, c.evict(reconcile.WithCause(ctx, pod), pod, e)
}

func (c *controller) wait(pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[pod] = true
}

// stay tells that a pod which was to be evicted stays.
func (c *controller) stay(pod *corev1.Pod) {
	if c.done(pod.UID) && pod.DeletionTimestamp == nil {
		c.env.Events.Event(pod, corev1.EventTypeNormal, reasonEviction, "Cancelling deletion")
	}
}

// done ends the wait for a pod; it reports whether there was one.
func (c *controller) done(pod types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waited := c.waiting[pod]
	delete(c.waiting, pod)
	return waited
}

// evict says why and deletes the pod, as it is now in the API: another may have its name by now, or have deleted it.
func (c *controller) evict(ctx context.Context, pod *corev1.Pod, e *eviction) error {
	client := c.env.Client.CoreV1().Pods(pod.Namespace)
	fresh, err := client.Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (fresh.UID != pod.UID || fresh.DeletionTimestamp != nil) {
		c.done(pod.UID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("get pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.env.Events.Event(fresh, corev1.EventTypeNormal, reasonEviction, "Marking for deletion")
	if err := c.mark(ctx, fresh); err != nil {
		return err
	}
	c.count(e, 1) // before the cache can show it: the rules are told then
	err = client.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil {
		c.count(e, -1)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if err == nil {
		c.env.Numbers.Series().DeviceEvicted(c.env.Now().Sub(e.when))
	}
	c.done(pod.UID)
	return nil
}

// mark writes why the pod goes.
func (c *controller) mark(ctx context.Context, pod *corev1.Pod) error {
	if conditions.Pods.Is(pod.Status.Conditions, corev1.DisruptionTarget, corev1.ConditionTrue) {
		return nil
	}
	next := pod.DeepCopy()
	next.Status.Conditions = conditions.Pods.SetLast(next.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.env.Now()),
		Reason: "DeletionByDeviceTaintManager", Message: "Device Taint manager: deleting due to NoExecute taint",
	})
	_, err := c.env.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// count counts an eviction for each rule that caused it.
func (c *controller) count(e *eviction, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rule := range e.rules {
		c.evicted[rule] += by
	}
}

func (c *controller) evictedFor(rule types.UID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted[rule]
}

// forget drops the count of a rule that is gone.
func (c *controller) forget(rule types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.evicted, rule)
}
