package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// New keeps DaemonSets.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "daemonset-controller",
		Account: "daemon-set-controller",
		Reads: []reconcile.Read{
			reconcile.DaemonSets, reconcile.ControllerRevisions.By(reconcile.ByController),
			reconcile.Pods.By(reconcile.ByController), reconcile.Nodes,
		},
		Run: func(ctx context.Context, env *reconcile.Env) error { return newController(env).run(ctx) },
	}
}

// controller is one term of the controller.
type controller struct {
	env       *reconcile.Env
	sets      reconcile.Cache[*appsv1.DaemonSet]
	revisions reconcile.Cache[*appsv1.ControllerRevision]
	pods      reconcile.Cache[*corev1.Pod]
	nodes     reconcile.Cache[*corev1.Node]
	expect    *expect.Expectations
	backoff   *backoff
}

func newController(env *reconcile.Env) *controller {
	return &controller{
		env: env, sets: reconcile.DaemonSets.From(env), revisions: reconcile.ControllerRevisions.From(env),
		pods: reconcile.Pods.From(env), nodes: reconcile.Nodes.From(env),
		expect: expect.New(burst), backoff: newBackoff(),
	}
}

func (c *controller) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "daemonset",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Changes(c.sets, c.setChanged), reconcile.Changes(c.revisions, c.childChanged),
			reconcile.Changes(c.pods, c.podChanged), reconcile.Changes(c.nodes, c.nodeChanged),
		},
		Env: c.env,
	})
}

// setChanged maps a DaemonSet to itself and forgets what is known of a deleted one.
func (c *controller) setChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil && (after == nil || after.GetUID() != before.GetUID()) {
		c.expect.Forget(before.GetUID())
		c.backoff.forget(before.GetUID())
	}
	if after == nil {
		return []reconcile.Key{reconcile.KeyOf(before)}
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

// podChanged tells the expectations of it, too.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	c.expect.Seen(before, after)
	return c.childChanged(before, after)
}

// childChanged maps a pod or revision to the DaemonSets that control it or, for an
// orphan, to those that would adopt it.
func (c *controller) childChanged(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, child := range []metav1.Object{before, after} {
		if key, ok := reconcile.OwnerKey(child, kind.GroupKind()); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 || after == nil || metav1.GetControllerOfNoCopy(after) != nil {
		return keys
	}
	for _, ds := range c.in(after.GetNamespace()) {
		selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(after.GetLabels())) {
			keys = append(keys, reconcile.KeyOf(ds))
		}
	}
	return keys
}

// in lists the DaemonSets of a namespace, or of all if it is empty.
func (c *controller) in(namespace string) []*appsv1.DaemonSet {
	sets, err := c.sets.List(namespace, nil)
	if err != nil {
		return nil // the source of this cache says so
	}
	return sets
}

// nodeChanged maps a node to the DaemonSets that judge it in another way than before.
func (c *controller) nodeChanged(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Node)
	now, _ := after.(*corev1.Node)
	if now == nil {
		c.backoff.forgetNode(was.Name)
	}
	if was != nil && now != nil && apiequality.Semantic.DeepEqual(was.Labels, now.Labels) &&
		apiequality.Semantic.DeepEqual(was.Spec.Taints, now.Spec.Taints) {
		return nil
	}
	var keys []reconcile.Key
	for _, ds := range c.in("") {
		fit := fitOf(ds)
		if judge(fit, was) != judge(fit, now) {
			keys = append(keys, reconcile.KeyOf(ds))
		}
	}
	return keys
}

// judge is fit.of, where a node that is not there fits nothing.
func judge(f fit, node *corev1.Node) verdict {
	if node == nil {
		return verdict{}
	}
	return f.of(node)
}

// reconcile reads one DaemonSet with its pods and history, plans, and acts.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	ds, err := c.sets.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return 0, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	if selector.Empty() {
		c.env.Events.Event(ds, corev1.EventTypeWarning, "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required.")
		return 0, nil
	}
	// The garbage collector deletes or orphans pods and revisions of a DaemonSet that
	// is being deleted, in an order of its own: what is left tells nothing.
	if ds.DeletionTimestamp != nil {
		return 0, nil
	}
	return c.keep(reconcile.WithCause(ctx, ds), ds, selector)
}

func (c *controller) keep(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector) (time.Duration, error) {
	seen, err := c.observe(ctx, ds, selector)
	if err != nil {
		return 0, err
	}
	history, err := c.revise(ctx, ds, selector, seen.pods)
	if err != nil {
		return 0, err
	}
	seen.hash = history.current.Labels[hashLabel]
	todo := plan(ds, seen, c.env.Now())
	actErr := c.act(ctx, ds, seen, todo)
	statusErr := c.writeStatus(ctx, ds, todo.status)
	if actErr != nil {
		return 0, actErr
	}
	if !seen.settled {
		if todo.again == 0 || todo.again > expect.Patience {
			todo.again = expect.Patience // then the API itself is asked
		}
		return todo.again, statusErr
	}
	return todo.again, errors.Join(statusErr, revisions.Delete(ctx, c.env.Client, history.surplus(ds, seen.pods)...))
}

// observe gathers nodes and the pods that ds controls, after adopting and releasing.
func (c *controller) observe(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector) (observed, error) {
	nodes, err := c.nodes.List("", nil)
	if err != nil {
		return observed{}, err
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	now := c.env.Now()
	seen := observed{nodes: nodes, wait: func(node string) time.Duration { return c.backoff.wait(ds, node, now) }}
	settled, expired := c.expect.Check(ds.UID, now)
	if expired {
		seen.settled = true
		seen.pods, err = c.livePods(ctx, ds, selector)
		return seen, err
	}
	seen.settled, seen.deleting = settled, c.expect.Deleting(ds.UID)
	seen.pods, err = c.claimPods(ctx, ds, selector)
	return seen, err
}

func (c *controller) claimPods(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector) ([]*corev1.Pod, error) {
	owned, err := c.pods.Owned(ds)
	if err != nil {
		return nil, err
	}
	orphans, err := c.pods.Orphans(ds.Namespace)
	if err != nil {
		return nil, err
	}
	return adopt.CarryOut(ctx, ds, adopt.Claim(ds, selector, owned, orphans), adopt.Writer[*appsv1.DaemonSet, *corev1.Pod]{
		Kind: kind, Owner: c.env.Client.AppsV1().DaemonSets(ds.Namespace).Get, Patch: c.env.Client.CoreV1().Pods(ds.Namespace).Patch,
	})
}

// livePods asks the API when the cache failed to show an own creation for too long, or when a creation had no answer: a
// lost event neither blocks the DaemonSet nor doubles a pod.
func (c *controller) livePods(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector) ([]*corev1.Pod, error) {
	cached := func() ([]*corev1.Pod, error) { return c.pods.Owned(ds) }
	return c.expect.Live(ctx, c.env.Client.CoreV1().Pods(ds.Namespace), ds, selector, cached, c.env.Now())
}
