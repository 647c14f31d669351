package deployment

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/ownership"
	"github.com/setpoint-io/setpoint/controllers/pods"
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
	cfg  Config
	sets cache.SharedIndexInformer
	pods cache.SharedIndexInformer
}

// kind is what owner references name; setKind is what pods are owned by.
var (
	kind    = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	setKind = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
)

// Warm creates the informers and indexes that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Apps().V1().Deployments().Informer()
	if err := reconcile.IndexByController(f.Apps().V1().ReplicaSets().Informer()); err != nil {
		return err
	}
	return reconcile.IndexByController(f.Core().V1().Pods().Informer())
}

// Run reconciles Deployments until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	if err := Warm(cfg.Informers); err != nil {
		return err
	}
	c := &controller{
		cfg:  cfg,
		sets: cfg.Informers.Apps().V1().ReplicaSets().Informer(),
		pods: cfg.Informers.Core().V1().Pods().Informer(),
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "deployment",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(cfg.Informers.Apps().V1().Deployments().Informer()),
			{Informer: c.sets, Map: c.setChanged},
			{Informer: c.pods, Map: c.podChanged},
		},
		Logger: cfg.Logger,
	})
}

// setChanged maps a ReplicaSet to the Deployments that control it or, for an
// orphan, to those that would adopt it.
func (c *controller) setChanged(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, rs := range []metav1.Object{before, after} {
		if key, ok := reconcile.OwnerKey(rs, kind.GroupKind()); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 || after == nil || metav1.GetControllerOfNoCopy(after) != nil {
		return keys
	}
	deployments, err := c.cfg.Informers.Apps().V1().Deployments().Lister().Deployments(after.GetNamespace()).List(labels.Everything())
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
	if now, ok := after.(*corev1.Pod); ok && (pods.Finished(pod) || !pods.Finished(now)) {
		return nil
	}
	key, ok := reconcile.OwnerKey(pod, setKind)
	if !ok {
		return nil
	}
	rs, err := c.cfg.Informers.Apps().V1().ReplicaSets().Lister().ReplicaSets(key.Namespace).Get(key.Name)
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
	d, err := c.cfg.Informers.Apps().V1().Deployments().Lister().Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ctx = reconcile.WithCause(ctx, d)
	seen, err := c.observe(ctx, d)
	if err != nil {
		return 0, err
	}
	todo := plan(d, seen, time.Now())
	return todo.again, c.act(ctx, d, todo)
}

// observe gathers the ReplicaSets that d controls, after adopting and releasing.
func (c *controller) observe(ctx context.Context, d *appsv1.Deployment) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return observed{}, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	owned, err := reconcile.Owned[*appsv1.ReplicaSet](c.sets, d)
	if err != nil {
		return observed{}, err
	}
	orphans, err := reconcile.Orphans[*appsv1.ReplicaSet](c.sets, d.Namespace)
	if err != nil {
		return observed{}, err
	}
	sets, err := c.claim(ctx, d, ownership.Claim(d, selector, owned, orphans))
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
		theirs, err := reconcile.Owned[*corev1.Pod](c.pods, rs)
		if err != nil {
			return 0, err
		}
		for _, p := range theirs {
			if !pods.Finished(p) {
				n++
			}
		}
	}
	return n, nil
}
