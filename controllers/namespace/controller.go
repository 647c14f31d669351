package namespace

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// remainingDelay is how soon a namespace that still has content is looked at
// again: finalizers of any kind may hold it, and no informer tells of them.
const remainingDelay = time.Second

// New empties deleted namespaces.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  "namespace-controller",
		Reads: []reconcile.Read{reconcile.Namespaces, reconcile.Pods},
		Run:   run,
	}
}

type controller struct {
	env        *reconcile.Env
	namespaces reconcile.Cache[*corev1.Namespace]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.Namespaces.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "namespace",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Self(c.namespaces), reconcile.Changes(reconcile.Pods.From(env), c.podGone)},
		Env:       env,
	})
}

// podGone wakes a Terminating namespace when one of its pods is gone.
func (c *controller) podGone(before, after metav1.Object) []reconcile.Key {
	if after != nil {
		return nil
	}
	ns, err := c.namespaces.Get(reconcile.Key{Name: before.GetNamespace()})
	if err != nil || ns.DeletionTimestamp == nil {
		return nil
	}
	return []reconcile.Key{{Name: ns.Name}}
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	ns, err := c.namespaces.Get(key)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return 0, err
	}
	ctx = reconcile.WithCause(ctx, ns)
	ns, err = c.writeStatus(ctx, ns, terminating(ns))
	if err != nil {
		return 0, err
	}
	left := c.empty(ctx, ns.Name)
	ns, err = c.writeStatus(ctx, ns, withConditions(ns, left, c.env.Now()))
	if err != nil {
		return 0, err
	}
	if !left.nothing() {
		return remainingDelay, nil
	}
	return 0, c.finalize(ctx, ns)
}

// terminating is the status with the phase that refuses new content.
func terminating(ns *corev1.Namespace) corev1.NamespaceStatus {
	s := *ns.Status.DeepCopy()
	s.Phase = corev1.NamespaceTerminating
	return s
}

func (c *controller) writeStatus(ctx context.Context, ns *corev1.Namespace, status corev1.NamespaceStatus) (*corev1.Namespace, error) {
	if apiequality.Semantic.DeepEqual(ns.Status, status) {
		return ns, nil
	}
	next := ns.DeepCopy()
	next.Status = status
	out, err := c.env.Client.CoreV1().Namespaces().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write status: %w", err)
	}
	return out, nil
}

// finalize lets the namespace go.
func (c *controller) finalize(ctx context.Context, ns *corev1.Namespace) error {
	next := ns.DeepCopy()
	next.Spec.Finalizers = slices.DeleteFunc(
		next.Spec.Finalizers,
		func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes },
	)
	_, err := c.env.Client.CoreV1().Namespaces().Finalize(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalize: %w", err)
	}
	return nil
}
