package devicetainteviction

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// statusInterval is the shortest time between two writes of the status of a rule whose spec stays.
const statusInterval = 10 * time.Second

// reconcileRule writes how far the evictions for a rule are.
func (c *controller) reconcileRule(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	rule, err := c.told.Get(c.rules, key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	var was metav1.Condition
	now := c.env.Now()
	if found := meta.FindStatusCondition(rule.Status.Conditions, resourcev1.DeviceTaintConditionEvictionInProgress); found != nil {
		was = *found
		if wait := was.LastTransitionTime.Add(statusInterval).Sub(now); was.ObservedGeneration == rule.Generation && wait > 0 {
			return min(wait, statusInterval), nil
		}
	}
	found, err := c.progressOf(rule)
	if err != nil {
		return 0, err
	}
	next := condition(rule, found)
	next.LastTransitionTime = was.LastTransitionTime
	if next == was {
		return 0, nil
	}
	next.LastTransitionTime = metav1.NewTime(now)
	if err := c.apply(reconcile.WithCause(ctx, rule), rule, next); err != nil {
		return 0, err
	}
	return statusInterval, nil
}

func (c *controller) apply(ctx context.Context, rule *resourcev1.DeviceTaintRule, next metav1.Condition) error {
	status := applyv1.DeviceTaintRuleStatus().WithConditions(applymetav1.Condition().
		WithType(next.Type).WithStatus(next.Status).WithReason(next.Reason).WithMessage(next.Message).
		WithObservedGeneration(next.ObservedGeneration).WithLastTransitionTime(next.LastTransitionTime))
	written, err := c.env.Client.ResourceV1().DeviceTaintRules().ApplyStatus(ctx,
		applyv1.DeviceTaintRule(rule.Name).WithUID(rule.UID).WithStatus(status),
		metav1.ApplyOptions{FieldManager: controllerName, Force: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("add condition to DeviceTaintRule status: %w", err)
	}
	c.told.Wrote(written)
	return nil
}

// progress is what a rule's condition tells.
type progress struct {
	pods, namespaces   int // that have to go, or would if the effect was NoExecute
	evicted            int
	published, granted int // devices that the rule selects; only for the effect None
}

// progressOf counts what a rule does, or would do.
func (c *controller) progressOf(rule *resourcev1.DeviceTaintRule) (progress, error) {
	p := progress{evicted: c.evictedFor(rule.UID)}
	evicting := rule
	switch rule.Spec.Taint.Effect {
	case resourcev1.DeviceTaintEffectNoExecute:
	case resourcev1.DeviceTaintEffectNone:
		evicting = rule.DeepCopy()
		evicting.Spec.Taint.Effect = resourcev1.DeviceTaintEffectNoExecute
	default:
		return p, nil
	}
	v, err := c.view()
	if err != nil {
		return p, err
	}
	v.rules = []*resourcev1.DeviceTaintRule{evicting}
	selected := c.selectedBy(rule)
	p.pods, p.namespaces = c.countPods(v, rule, selected)
	if rule.Spec.Taint.Effect != resourcev1.DeviceTaintEffectNone {
		return p, nil
	}
	for _, claim := range selected {
		p.granted += countSelected(rule, claim)
	}
	p.published, err = c.countPublished(v, rule)
	return p, err
}

// countPods counts the users of claims who have to go because of a rule, and their namespaces.
func (c *controller) countPods(v view, rule *resourcev1.DeviceTaintRule, selected []*resourcev1.ResourceClaim) (pods, namespaces int) {
	seen, in := map[work]bool{}, map[string]bool{}
	for _, claim := range selected {
		for _, key := range podsOf(claim) {
			pod, err := c.pods.Get(key.object)
			if err != nil || seen[key] {
				continue
			}
			if e := v.evictionOf(pod, c.claimIn(pod.Namespace)); e != nil && e.rules[rule.UID] {
				seen[key], in[pod.Namespace] = true, true
			}
		}
	}
	return len(seen), len(in)
}

// countPublished counts the devices in slices that a rule selects.
func (c *controller) countPublished(v view, rule *resourcev1.DeviceTaintRule) (n int, err error) {
	all, err := c.slices.List("", labels.Everything())
	seen := map[string]bool{}
	for _, slice := range all {
		driver, pool := slice.Spec.Driver, slice.Spec.Pool.Name
		if seen[poolKey(driver, pool)] {
			continue
		}
		seen[poolKey(driver, pool)] = true
		for _, device := range activeDevices(v.pool(driver, pool)) {
			if selects(rule, driver, pool, device.Name) {
				n++
			}
		}
	}
	return n, err
}

// condition is what a rule's status says, in upstream's words.
func condition(rule *resourcev1.DeviceTaintRule, p progress) metav1.Condition {
	c := metav1.Condition{
		Type: resourcev1.DeviceTaintConditionEvictionInProgress, Status: metav1.ConditionFalse, ObservedGeneration: rule.Generation,
	}
	switch effect := rule.Spec.Taint.Effect; {
	case effect == resourcev1.DeviceTaintEffectNone:
		c.Reason = "NoEffect"
		c.Message = number(p.published, "published device selected. ", "published devices selected. ") +
			number(p.granted, "allocated device selected. ", "allocated devices selected. ") +
			number(p.pods, "pod would be evicted in ", "pods would be evicted in ") +
			number(p.namespaces, "namespace ", "different namespaces ") + "if the effect was NoExecute. " +
			"This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
	case effect != resourcev1.DeviceTaintEffectNoExecute:
		c.Reason, c.Message = "OtherEffect", "Eviction only happens for the NoExecute effect."
	case p.pods > 0:
		c.Status, c.Reason = metav1.ConditionTrue, "PodsPendingEviction"
		c.Message = number(p.pods, "pod needs to be evicted in ", "pods need to be evicted in ") +
			number(p.namespaces, "namespace.", "different namespaces.")
	case p.evicted > 0:
		c.Reason = "Completed"
	default:
		c.Reason = "NotStarted"
	}
	if p.evicted > 0 {
		if c.Message != "" {
			c.Message += " "
		}
		c.Message += number(p.evicted, "pod ", "pods ") + "evicted since starting the controller."
	}
	return c
}

// number is n with the word for one or for more.
func number(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
