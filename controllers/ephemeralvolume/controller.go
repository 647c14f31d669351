package ephemeralvolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// byClaim files pods under the claims of their generic ephemeral volumes.
var byClaim = reconcile.Index{Name: "setpoint/ephemeral-claim", Keys: func(o metav1.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	var keys []string
	for _, name := range claimsOf(pod) {
		keys = append(keys, pod.Namespace+"/"+name)
	}
	return keys
}}

// New makes the claims of generic ephemeral volumes.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "ephemeral_volume",
		Account: "ephemeral-volume-controller",
		Run:     run,
		Reads:   []reconcile.Read{reconcile.Pods.By(byClaim), reconcile.PersistentVolumeClaims},
	}
}

type controller struct {
	env    *reconcile.Env
	pods   reconcile.Cache[*corev1.Pod]
	claims reconcile.Cache[*corev1.PersistentVolumeClaim]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.Pods.From(env), reconcile.PersistentVolumeClaims.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "ephemeralvolume", Queue: "ephemeral_volume", Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.Source{reconcile.Changes(c.pods, newPods), reconcile.Changes(c.claims, c.podsOfClaim)},
	})
}

// newPods are pods with such volumes, when they appear: their volumes never change.
func newPods(before, after metav1.Object) []reconcile.Key {
	pod, ok := after.(*corev1.Pod)
	if !ok || before != nil && before.GetUID() == pod.UID || len(claimsOf(pod)) == 0 {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(pod)}
}

// podsOfClaim are the pods that have a claim which appears, changes its owner or goes.
func (c *controller) podsOfClaim(before, after metav1.Object) []reconcile.Key {
	if before != nil && after != nil && before.GetUID() == after.GetUID() {
		return nil
	}
	if after == nil {
		after = before
	}
	pods, err := c.pods.ByIndex(byClaim, reconcile.KeyOf(after).String())
	if err != nil {
		c.env.Logger.Error("looking up pods failed", "err", err) // the index is declared, so it is there
	}
	var keys []reconcile.Key
	for _, pod := range pods {
		keys = append(keys, reconcile.KeyOf(pod))
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	pod, err := c.pods.Get(key)
	if apierrors.IsNotFound(err) || err == nil && pod.DeletionTimestamp != nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for i := range pod.Spec.Volumes {
		if err := c.ensure(reconcile.WithCause(ctx, pod), pod, &pod.Spec.Volumes[i]); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// ensure makes the claim of a volume. A claim that is there although the cache does not know it is looked at when the
// cache does.
func (c *controller) ensure(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) error {
	claim, err := plan(pod, v, func(name string) *corev1.PersistentVolumeClaim {
		found, err := c.claims.Get(reconcile.Key{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return nil // it does not exist: a cache that is declared fails in no other way
		}
		return found
	})
	if claim == nil && err != nil {
		c.failed(pod, v, err)
		return reconcile.Terminal(err) // until the claim changes
	}
	if claim == nil {
		return nil
	}
	_, err = c.env.Client.CoreV1().PersistentVolumeClaims(pod.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	err = fmt.Errorf("create PVC %s: %w", claim.Name, err)
	c.failed(pod, v, err)
	return err
}

func (c *controller) failed(pod *corev1.Pod, v *corev1.Volume, err error) {
	c.env.Events.Event(pod, corev1.EventTypeWarning, "FailedBinding", fmt.Sprintf("ephemeral volume %s: %v", v.Name, err))
}
