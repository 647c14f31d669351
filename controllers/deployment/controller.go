package deployment

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/newest"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// New keeps Deployments.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name: "deployment-controller",
		Reads: []reconcile.Read{
			reconcile.Deployments,
			reconcile.ReplicaSets.By(reconcile.ByController),
			reconcile.Pods.By(reconcile.ByController),
		},
		Run: run,
	}
}

// controller is one term of the controller.
type controller struct {
	env         *reconcile.Env
	deployments reconcile.Cache[*appsv1.Deployment]
	sets        reconcile.Cache[*appsv1.ReplicaSet]
	pods        reconcile.Cache[*corev1.Pod]
	// written are the ReplicaSets that the cache may lack the newest version of: a plan from old ones could let one grow
	// in the place of another that has grown already.
	written newest.Versions[*appsv1.ReplicaSet]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, deployments: reconcile.Deployments.From(env), sets: reconcile.ReplicaSets.From(env), pods: reconcile.Pods.From(env),
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "deployment",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(c.deployments), reconcile.Changes(c.sets, c.setChanged), reconcile.Changes(c.pods, c.podChanged),
		},
		Env: env,
	})
}

// kind is what owner references name; setKind is what pods are owned by.
var (
	kind    = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	setKind = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
)

// setChanged maps a ReplicaSet to the Deployments that control it or, for an
// orphan, to those that would adopt it.
func (c *controller) setChanged(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	if after == nil {
		c.written.Forget(reconcile.KeyOf(before))
	}
	for _, rs := range []metav1.Object{before, after} {
		if key, ok := reconcile.OwnerKey(rs, kind.GroupKind()); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 || after == nil || metav1.GetControllerOfNoCopy(after) != nil {
		return keys
	}
	deployments, err := c.deployments.List(after.GetNamespace(), nil)
	if err != nil {
		return nil
	}
	for _, d := range deployments {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(after.GetLabels())) {
			keys = append(keys, reconcile.KeyOf(d))
		}
	}
	return keys
}

// podChanged wakes a Deployment when a pod of it ends or goes: Recreate waits
// for that. Everything else about pods arrives through ReplicaSet status.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	pod, ok := before.(*corev1.Pod)
	if !ok {
		return nil
	}
	if now, ok := after.(*corev1.Pod); ok && (podstate.Finished(pod) || !podstate.Finished(now)) {
		return nil
	}
	key, ok := reconcile.OwnerKey(pod, setKind)
	if !ok {
		return nil
	}
	rs, err := c.sets.Get(key)
	if err != nil {
		return nil
	}
	if key, ok = reconcile.OwnerKey(rs, kind.GroupKind()); ok {
		return []reconcile.Key{key}
	}
	return nil
}

// reconcile reads one Deployment and its ReplicaSets, plans, and acts.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	d, err := c.deployments.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	ctx = reconcile.WithCause(ctx, d)
	seen, err := c.observe(ctx, d)
	if err != nil {
		return 0, err
	}
	todo := plan(d, seen, c.env.Now())
	return todo.again, c.act(ctx, d, todo)
}

// observe gathers the ReplicaSets that d controls, after adopting and releasing.
func (c *controller) observe(ctx context.Context, d *appsv1.Deployment) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return observed{}, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	owned, err := c.written.List(func() ([]*appsv1.ReplicaSet, error) { return c.sets.Owned(d) })
	if err != nil {
		return observed{}, err
	}
	orphans, err := c.sets.Orphans(d.Namespace)
	if err != nil {
		return observed{}, err
	}
	sets, err := c.claim(ctx, d, adopt.Claim(d, selector, owned, orphans))
	if err != nil {
		return observed{}, err
	}
	seen := observed{sets: sets}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		seen.oldPods, err = c.oldPods(d, sets)
	}
	return seen, err
}

// oldPods counts pods of old ReplicaSets whose containers may still run.
func (c *controller) oldPods(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (int, error) {
	current, n := findNew(d, sets), 0
	for _, rs := range sets {
		if current != nil && rs.UID == current.UID {
			continue
		}
		theirs, err := c.pods.Owned(rs)
		if err != nil {
			return 0, err
		}
		for _, p := range theirs {
			if !podstate.Finished(p) {
				n++
			}
		}
	}
	return n, nil
}
