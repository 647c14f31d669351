package replicaset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// New keeps ReplicaSets.
func New() reconcile.Controller { return NewOf("replicaset-controller", replicaSets) }

// NewOf keeps sets of any kind. Sets may be asked for without a client, for what they declare.
func NewOf(name string, sets func(client kubernetes.Interface) Sets) reconcile.Controller {
	return reconcile.Controller{
		Name:  name,
		Reads: []reconcile.Read{sets(nil).stored(), reconcile.Pods.By(reconcile.ByController), quotas},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			return newController(env, sets(env.Client)).run(ctx)
		},
	}
}

var quotas = reconcile.KindOf[*corev1.ResourceQuota](corev1.SchemeGroupVersion.WithResource("resourcequotas"))

// controller is one term of the controller.
type controller struct {
	env    *reconcile.Env
	sets   Sets
	pods   reconcile.Cache[*corev1.Pod]
	quotas reconcile.Cache[*corev1.ResourceQuota]
	expect *expect.Expectations
}

func newController(env *reconcile.Env, sets Sets) *controller {
	sets.cache = sets.stored().From(env)
	return &controller{env: env, sets: sets, pods: reconcile.Pods.From(env), quotas: quotas.From(env), expect: expect.New(burstLimit)}
}

func (c *controller) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name:      c.sets.Resource.Resource,
		Queue:     c.sets.Queue,
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Changes(
				c.sets.cache,
				c.setChanged,
			), reconcile.Changes(c.pods, c.podChanged), reconcile.Changes(c.quotas, c.quotaChanged),
		},
		Env: c.env,
	})
}

// setChanged maps a ReplicaSet to itself and forgets what was expected of a
// deleted one.
func (c *controller) setChanged(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		c.expect.Forget(before.GetUID())
		return []reconcile.Key{reconcile.KeyOf(before)}
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

// podChanged maps a pod to the ReplicaSets that control it or, for an orphan,
// to those that would adopt it; it also settles expectations.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, pod := range []metav1.Object{before, after} {
		if pod == nil {
			continue
		}
		if key, ok := reconcile.OwnerKey(pod, c.sets.Kind.GroupKind()); ok {
			keys = append(keys, key)
		}
	}
	c.expect.Seen(before, after)
	if len(keys) == 0 && after != nil && metav1.GetControllerOfNoCopy(after) == nil {
		return c.adopters(after)
	}
	return keys
}

// adopters lists the ReplicaSets whose selector matches an orphan.
func (c *controller) adopters(pod metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, rs := range c.sets.in(pod.GetNamespace()) {
		selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.GetLabels())) {
			keys = append(keys, reconcile.KeyOf(rs))
		}
	}
	return keys
}

// quotaChanged wakes the ReplicaSets of a namespace that could not create all
// their pods, when a quota has more room than before: their pauses have grown
// to minutes meanwhile.
func (c *controller) quotaChanged(before, after metav1.Object) []reconcile.Key {
	was, ok := before.(*corev1.ResourceQuota)
	if now, _ := after.(*corev1.ResourceQuota); !ok || now != nil && !moreRoom(was, now) {
		return nil
	}
	var keys []reconcile.Key
	for _, rs := range c.sets.in(was.Namespace) {
		if conditions.ReplicaSets.Find(rs.Status.Conditions, appsv1.ReplicaSetReplicaFailure) != nil {
			keys = append(keys, reconcile.KeyOf(rs))
		}
	}
	return keys
}

// moreRoom tells whether a quota allows more of anything than it did.
func moreRoom(was, now *corev1.ResourceQuota) bool {
	for name, hard := range was.Status.Hard {
		used, usedNow := was.Status.Used[name], now.Status.Used[name]
		hardNow, limited := now.Status.Hard[name]
		if !limited || hardNow.Cmp(hard) > 0 || usedNow.Cmp(used) < 0 {
			return true
		}
	}
	return false
}

// reconcile reads one ReplicaSet and its pods, plans, and acts.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	rs, err := c.sets.cached(key)
	if rs == nil || err != nil {
		return 0, err
	}
	ctx = reconcile.WithCause(ctx, rs)
	seen, err := c.observe(ctx, rs)
	if err != nil {
		return 0, err
	}
	todo := plan(rs, seen, c.env.Now())
	actErr := c.act(ctx, rs, seen, todo)
	statusErr := c.sets.writeStatus(ctx, rs, withFailure(todo.status, rs.Status, todo, actErr, c.env.Now()))
	if actErr != nil {
		return 0, actErr
	}
	if !seen.settled && (todo.again == 0 || todo.again > expect.Patience) {
		return expect.Patience, statusErr // then the API itself is asked
	}
	return todo.again, statusErr
}

// observe gathers the pods that rs controls, after adopting and releasing.
func (c *controller) observe(ctx context.Context, rs *appsv1.ReplicaSet) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return observed{}, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	settled, expired := c.expect.Check(rs.UID, c.env.Now())
	if expired {
		return c.observeLive(ctx, rs, selector)
	}
	owned, err := c.pods.Owned(rs)
	if err != nil {
		return observed{}, err
	}
	orphans, err := c.pods.Orphans(rs.Namespace)
	if err != nil {
		return observed{}, err
	}
	// Pods that have ended are neither adopted nor released, as upstream does: they count nowhere.
	owned, orphans = slices.DeleteFunc(owned, podstate.Finished), slices.DeleteFunc(orphans, podstate.Finished)
	mine, err := c.claim(ctx, rs, adopt.Claim(rs, selector, owned, orphans))
	if err != nil {
		return observed{}, err
	}
	seen := observed{pods: mine, settled: settled, deleting: c.expect.Deleting(rs.UID)}
	if len(mine) > int(wished(rs)) {
		seen.related = c.relatedPods(rs)
	}
	return seen, nil
}

// observeLive asks the API when the cache failed to show an own creation for too long, or when a creation had no answer:
// a lost event neither blocks the ReplicaSet nor doubles a pod.
func (c *controller) observeLive(ctx context.Context, rs *appsv1.ReplicaSet, selector labels.Selector) (observed, error) {
	cached := func() ([]*corev1.Pod, error) { return c.pods.Owned(rs) }
	pods, err := c.expect.Live(ctx, c.env.Client.CoreV1().Pods(rs.Namespace), rs, selector, cached, c.env.Now())
	return observed{pods: pods, settled: true}, err
}

// relatedPods lists the pods of all ReplicaSets with the same owner: a rollout
// spreads what remains over the nodes by counting them.
func (c *controller) relatedPods(rs *appsv1.ReplicaSet) []*corev1.Pod {
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil {
		return nil
	}
	var related []*corev1.Pod
	for _, s := range c.sets.ownedBy(ref.UID) {
		if s.UID == rs.UID {
			continue
		}
		theirs, err := c.pods.Owned(s)
		if err == nil {
			related = append(related, theirs...)
		}
	}
	return related
}
