package disruption

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// New counts what PodDisruptionBudgets allow.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name: "disruption-controller",
		Reads: []reconcile.Read{
			budgets, reconcile.LabelledPods, reconcile.Deployments, reconcile.ReplicaSets, reconcile.StatefulSets, reconcile.ReplicationControllers,
		},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			scales, err := newScales(env)
			if err != nil {
				return err
			}
			return newController(env, scales).run(ctx)
		},
	}
}

var budgets = reconcile.KindOf[*policyv1.PodDisruptionBudget](policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"))

// controller is one term of the controller.
type controller struct {
	env     *reconcile.Env
	budgets reconcile.Cache[*policyv1.PodDisruptionBudget]
	pods    reconcile.Cache[*corev1.Pod]
	owners  owners
	// told are the uids of pods of several budgets that got their event in this term.
	told sync.Map
}

func newController(env *reconcile.Env, scales scales) *controller {
	return &controller{env: env, budgets: budgets.From(env), pods: reconcile.LabelledPods.From(env), owners: owners{
		deployments: reconcile.Deployments.From(env), replicaSets: reconcile.ReplicaSets.From(env),
		statefulSets: reconcile.StatefulSets.From(env), replicationControllers: reconcile.ReplicationControllers.From(env), scales: scales,
	}}
}

// run runs two loops: one over budgets, one over pods whose eviction came to nothing.
func (c *controller) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []reconcile.Config{
		{Name: "disruption", Reconcile: c.reconcile, Sources: []reconcile.Source{
			reconcile.Self(c.budgets), reconcile.Changes(c.pods, c.podChanged),
			reconcile.Changes(c.owners.deployments, c.ownerChanged), reconcile.Changes(c.owners.replicaSets, c.ownerChanged),
			reconcile.Changes(c.owners.statefulSets, c.ownerChanged), reconcile.Changes(c.owners.replicationControllers, c.ownerChanged),
		}},
		{Name: "disruption-stale", Queue: "stale_pod_disruption", Reconcile: c.clearStale, Sources: []reconcile.Source{reconcile.Changes(c.pods, targeted)}},
	} {
		loop.Env = c.env
		group.Go(func() error { return reconcile.Run(ctx, loop) })
	}
	return group.Wait()
}

// podChanged maps a pod to the budgets that count it, as it was and as it is, if it counts differently now.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		c.told.Delete(before.GetUID())
	}
	if before != nil && after != nil && sameCount(before.(*corev1.Pod), after.(*corev1.Pod)) {
		return nil
	}
	return c.keysIn(namespaceOf(before, after), func(b *policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		return err == nil && (before != nil && selector.Matches(labels.Set(before.GetLabels())) ||
			after != nil && selector.Matches(labels.Set(after.GetLabels())))
	})
}

func namespaceOf(before, after metav1.Object) string {
	if after != nil {
		return after.GetNamespace()
	}
	return before.GetNamespace()
}

// ownerChanged maps a controller of pods, if it wants another number now or another owner tells it the number, to the budgets of
// its namespace that go by such numbers.
func (c *controller) ownerChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil && after != nil && before.GetUID() == after.GetUID() && replicasOf(before) == replicasOf(after) &&
		apiequality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)) {
		return nil
	}
	return c.keysIn(namespaceOf(before, after), needsScale)
}

// replicasOf is how many pods a controller of pods wants.
func replicasOf(o metav1.Object) int32 {
	var replicas *int32
	switch o := o.(type) {
	case *appsv1.Deployment:
		replicas = o.Spec.Replicas
	case *appsv1.ReplicaSet:
		replicas = o.Spec.Replicas
	case *appsv1.StatefulSet:
		replicas = o.Spec.Replicas
	case *corev1.ReplicationController:
		replicas = o.Spec.Replicas
	}
	if replicas == nil {
		return 1 // the API's default
	}
	return *replicas
}

func (c *controller) keysIn(namespace string, concerns func(b *policyv1.PodDisruptionBudget) bool) (keys []reconcile.Key) {
	all, err := c.budgets.List(namespace, nil)
	if err != nil {
		return nil // the loop, whose source the cache is, says so
	}
	for _, b := range all {
		if concerns(b) {
			keys = append(keys, reconcile.KeyOf(b))
		}
	}
	return keys
}

// reconcile counts the pods of one budget.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	budget, err := c.budgets.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	ctx = reconcile.WithCause(ctx, budget)
	seen, err := c.observe(ctx, budget)
	if err != nil {
		return 0, err
	}
	t := plan(budget, seen, c.env.Now())
	if apiequality.Semantic.DeepEqual(budget.Status, t.status) {
		return t.again, nil
	}
	next := budget.DeepCopy()
	next.Status = t.status
	_, err = c.env.Client.PolicyV1().PodDisruptionBudgets(budget.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("status: %w", err)
	}
	c.tell(budget, t, seen)
	return t.again, nil
}

// observe reads what a plan goes by. What cannot be counted is part of it; an error is one of this pass.
func (c *controller) observe(ctx context.Context, budget *policyv1.PodDisruptionBudget) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return observed{podsFailed: err}, nil
	}
	pods, err := c.pods.List(budget.Namespace, selector)
	if err != nil {
		return observed{}, err
	}
	seen := observed{pods: pods}
	if needsScale(budget) {
		seen.scale, seen.scaleFailed = c.owners.scaleOf(ctx, pods)
	}
	return seen, ctx.Err()
}

// tell writes the events of a plan that was carried out.
func (c *controller) tell(budget *policyv1.PodDisruptionBudget, t todo, seen observed) {
	for _, e := range t.events {
		if e.pod != nil {
			c.env.Events.Event(e.pod, e.kind, e.reason, e.text)
		} else {
			c.env.Events.Event(budget, e.kind, e.reason, e.text)
		}
	}
	for _, pod := range seen.pods {
		guards := c.keysIn(pod.Namespace, func(b *policyv1.PodDisruptionBudget) bool {
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			return err == nil && selector.Matches(labels.Set(pod.Labels))
		})
		if len(guards) < 2 {
			continue
		}
		if _, before := c.told.LoadOrStore(pod.UID, true); !before {
			c.env.Events.Eventf(pod, corev1.EventTypeWarning, "MultiplePodDisruptionBudgets",
				"Pod %q/%q matches multiple PodDisruptionBudgets.  Its evictions are refused.", pod.Namespace, pod.Name)
		}
	}
}
