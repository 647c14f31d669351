package replicaset

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/ownership"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Events    record.EventRecorder
	Logger    *slog.Logger
}

// controller is one term of the controller.
type controller struct {
	cfg    Config
	sets   Sets
	pods   cache.SharedIndexInformer
	expect *expectations
}

// Warm creates the informers and indexes that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	return WarmSets(f, f.Apps().V1().ReplicaSets().Informer())
}

// WarmSets does the same for sets of another kind.
func WarmSets(f informers.SharedInformerFactory, sets cache.SharedIndexInformer) error {
	if err := reconcile.IndexByController(sets); err != nil {
		return err
	}
	return reconcile.IndexByController(f.Core().V1().Pods().Informer())
}

// Run reconciles ReplicaSets until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	return RunSets(ctx, cfg, replicaSets(cfg))
}

// RunSets reconciles sets of any kind until ctx ends.
func RunSets(ctx context.Context, cfg Config, sets Sets) error {
	if err := WarmSets(cfg.Informers, sets.Informer); err != nil {
		return err
	}
	c := &controller{cfg: cfg, sets: sets, pods: cfg.Informers.Core().V1().Pods().Informer(), expect: newExpectations()}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      sets.Resource,
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			{Informer: sets.Informer, Map: c.setChanged},
			{Informer: c.pods, Map: c.podChanged},
		},
		Logger: cfg.Logger,
	})
}

// setChanged maps a ReplicaSet to itself and forgets what was expected of a
// deleted one.
func (c *controller) setChanged(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		c.expect.forget(before.GetUID())
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
	c.settle(before, after)
	if len(keys) == 0 && after != nil && metav1.GetControllerOfNoCopy(after) == nil {
		return c.adopters(after)
	}
	return keys
}

// settle tells the expectations what the cache now shows.
func (c *controller) settle(before, after metav1.Object) {
	pod := after
	if pod == nil {
		pod = before
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return
	}
	if before == nil {
		c.expect.created(ref.UID)
	}
	if after == nil || after.GetDeletionTimestamp() != nil {
		c.expect.deleted(ref.UID, pod.GetUID())
	}
}

// adopters lists the ReplicaSets whose selector matches an orphan.
func (c *controller) adopters(pod metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, rs := range c.sets.byIndex(cache.NamespaceIndex, pod.GetNamespace()) {
		selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.GetLabels())) {
			keys = append(keys, reconcile.KeyOf(rs))
		}
	}
	return keys
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
	todo := plan(rs, seen, time.Now())
	actErr := c.act(ctx, rs, todo)
	statusErr := c.sets.writeStatus(ctx, rs, withFailure(todo.status, rs.Status, todo, actErr, time.Now()))
	if actErr != nil {
		return 0, actErr
	}
	return todo.again, statusErr
}

// observe gathers the pods that rs controls, after adopting and releasing.
func (c *controller) observe(ctx context.Context, rs *appsv1.ReplicaSet) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return observed{}, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	settled, expired := c.expect.check(rs.UID, time.Now())
	if expired {
		return c.observeLive(ctx, rs, selector)
	}
	owned, err := reconcile.Owned[*corev1.Pod](c.pods, rs)
	if err != nil {
		return observed{}, err
	}
	orphans, err := reconcile.Orphans[*corev1.Pod](c.pods, rs.Namespace)
	if err != nil {
		return observed{}, err
	}
	mine, err := c.claim(ctx, rs, ownership.Claim(rs, selector, owned, orphans))
	if err != nil {
		return observed{}, err
	}
	seen := observed{pods: mine, settled: settled, deleting: c.expect.deleting(rs.UID)}
	if len(mine) > int(wished(rs)) {
		seen.related = c.relatedPods(rs)
	}
	return seen, nil
}

// observeLive asks the API when the cache failed to show an own write for too
// long, so that a lost event neither blocks the ReplicaSet nor doubles a pod.
func (c *controller) observeLive(ctx context.Context, rs *appsv1.ReplicaSet, selector labels.Selector) (observed, error) {
	list, err := c.cfg.Client.CoreV1().Pods(rs.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return observed{}, err
	}
	seen := observed{settled: true}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], rs) {
			seen.pods = append(seen.pods, &list.Items[i])
		}
	}
	c.expect.forget(rs.UID)
	return seen, nil
}

// relatedPods lists the pods of all ReplicaSets with the same owner: a rollout
// spreads what remains over the nodes by counting them.
func (c *controller) relatedPods(rs *appsv1.ReplicaSet) []*corev1.Pod {
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil {
		return nil
	}
	var related []*corev1.Pod
	for _, s := range c.sets.byIndex(reconcile.ControllerIndex, string(ref.UID)) {
		if s.UID == rs.UID {
			continue
		}
		theirs, err := reconcile.Owned[*corev1.Pod](c.pods, s)
		if err == nil {
			related = append(related, theirs...)
		}
	}
	return related
}
