package statefulset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
)

// New keeps StatefulSets.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name: "statefulset-controller",
		Reads: []reconcile.Read{
			reconcile.StatefulSets, reconcile.Pods.By(reconcile.ByController), reconcile.PersistentVolumeClaims,
			reconcile.ControllerRevisions.By(reconcile.ByController),
		},
		Run: run,
	}
}

// kind is what owner references name.
var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// controller is one term of the controller.
type controller struct {
	env       *reconcile.Env
	sets      reconcile.Cache[*appsv1.StatefulSet]
	pods      reconcile.Cache[*corev1.Pod]
	claims    reconcile.Cache[*corev1.PersistentVolumeClaim]
	revisions reconcile.Cache[*appsv1.ControllerRevision]
	expect    *expect.Expectations
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, sets: reconcile.StatefulSets.From(env), pods: reconcile.Pods.From(env),
		claims: reconcile.PersistentVolumeClaims.From(env), revisions: reconcile.ControllerRevisions.From(env), expect: expect.New(burst),
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "statefulset",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Changes(c.sets, c.setChanged), reconcile.Changes(c.pods, c.podChanged),
			reconcile.Changes(c.claims, c.claimChanged), reconcile.Owner(c.revisions, kind.GroupKind()),
		},
		Env: env,
	})
}

// setChanged maps a set to itself and forgets what was expected of a deleted one.
func (c *controller) setChanged(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		c.expect.Forget(before.GetUID())
		return []reconcile.Key{reconcile.KeyOf(before)}
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

// podChanged maps a pod to the sets that control it or, for one that no set controls, to those that would adopt it or
// wait for its name.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	c.expect.Seen(before, after)
	var keys []reconcile.Key
	for _, pod := range []metav1.Object{before, after} {
		if key, ok := reconcile.OwnerKey(pod, kind.GroupKind()); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 || after != nil && metav1.GetControllerOfNoCopy(after) != nil {
		return keys
	}
	pod := after
	if pod == nil {
		pod = before
	}
	return c.setsIn(pod.GetNamespace(), func(set *appsv1.StatefulSet) bool {
		_, named := ordinalOf(set, pod.GetName())
		return named
	})
}

// claimChanged maps a claim that came, went or changed owners to the sets that have it.
func (c *controller) claimChanged(before, after metav1.Object) []reconcile.Key {
	claim := after
	if after == nil {
		claim = before
	} else if before != nil && (before.GetDeletionTimestamp() == nil) == (after.GetDeletionTimestamp() == nil) &&
		apiequality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		return nil
	}
	return c.setsIn(claim.GetNamespace(), func(set *appsv1.StatefulSet) bool { return isClaimOf(set, claim.GetName()) })
}

// setsIn are the keys of those sets of a namespace that have something to do with a change.
func (c *controller) setsIn(namespace string, concerns func(set *appsv1.StatefulSet) bool) (keys []reconcile.Key) {
	sets, err := c.sets.List(namespace, nil)
	if err != nil {
		return nil
	}
	for _, set := range sets {
		if concerns(set) {
			keys = append(keys, reconcile.KeyOf(set))
		}
	}
	return keys
}

// reconcile reads one set and what belongs to it, plans, and acts.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	set, err := c.sets.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	ctx = reconcile.WithCause(ctx, set)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return 0, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	if settled, expired := c.expect.Check(set.UID, c.env.Now()); expired {
		c.expect.Forget(set.UID) // to create a pod twice is impossible: its name is taken
	} else if !settled {
		return expect.Patience, nil
	}
	pods, err := c.claimPods(ctx, set, selector)
	if err != nil {
		return 0, err
	}
	return c.pass(ctx, set, selector, pods)
}

// pass brings the set one step on.
func (c *controller) pass(ctx context.Context, was *appsv1.StatefulSet, selector labels.Selector,
	pods []*corev1.Pod) (time.Duration, error) {
	if was.DeletionTimestamp != nil {
		t := plan(was, observed{pods: pods}, c.env.Now())
		return t.again, c.writeStatus(ctx, was, t.status)
	}
	history, err := c.history(ctx, was, selector)
	if err != nil {
		return 0, err
	}
	set, r, err := c.revise(ctx, was, history)
	if err != nil {
		return 0, err
	}
	seen := observed{pods: pods, current: r.current, update: r.update, currentTemplate: &set.Spec.Template}
	if r.current != r.update {
		if seen.currentTemplate, err = templateOf(set, r.current); err != nil {
			return 0, reconcile.Terminal(err)
		}
	}
	if seen.claim, err = c.claimFinder(ctx, set, pods); err != nil {
		return 0, err
	}
	t := plan(set, seen, c.env.Now())
	actErr := c.act(ctx, set, t)
	if actErr == nil {
		t.status.CurrentReplicas -= t.outdated
	}
	return t.again, errors.Join(actErr, c.writeStatus(ctx, was, t.status), c.trim(ctx, set, r, history, pods))
}

// claimPods gathers the pods that the set controls, after adopting and releasing. Those whose deletion was asked for
// are shown so, whether the cache knows it or not.
func (c *controller) claimPods(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector) ([]*corev1.Pod, error) {
	owned, err := c.pods.Owned(set)
	if err != nil {
		return nil, err
	}
	orphans, err := c.pods.Orphans(set.Namespace)
	if err != nil {
		return nil, err
	}
	mine, err := adopt.CarryOut(ctx, set, claimed(set, selector, owned, orphans), adopt.Writer[*appsv1.StatefulSet, *corev1.Pod]{
		Kind: kind, Owner: c.env.Client.AppsV1().StatefulSets(set.Namespace).Get, Patch: c.env.Client.CoreV1().Pods(set.Namespace).Patch,
	})
	deleting := c.expect.Deleting(set.UID)
	for i, pod := range mine {
		if deleting[pod.UID] && pod.DeletionTimestamp == nil {
			mine[i] = pod.DeepCopy()
			mine[i].DeletionTimestamp = new(metav1.NewTime(c.env.Now()))
		}
	}
	return mine, err
}

// claimed is adopt.Claim for pods that also have a name of the set's ordinals.
func claimed(set *appsv1.StatefulSet, selector labels.Selector, owned, orphans []*corev1.Pod) adopt.Claims[*corev1.Pod] {
	all := adopt.Claim(set, selector, owned, orphans)
	claims := adopt.Claims[*corev1.Pod]{Release: all.Release}
	for _, pod := range all.Keep {
		if _, named := ordinalOf(set, pod.Name); named {
			claims.Keep = append(claims.Keep, pod)
		} else if set.DeletionTimestamp == nil && pod.DeletionTimestamp == nil {
			claims.Release = append(claims.Release, pod)
		}
	}
	for _, pod := range all.Adopt {
		if _, named := ordinalOf(set, pod.Name); named {
			claims.Adopt = append(claims.Adopt, pod)
		}
	}
	return claims
}

// claimFinder looks claims up in the cache. Those of pods that are to be scaled down are also asked of the API, if they
// are to go with their pods: one that the cache does not show yet would stay for ever.
func (c *controller) claimFinder(ctx context.Context, set *appsv1.StatefulSet,
	pods []*corev1.Pod) (func(name string) *corev1.PersistentVolumeClaim, error) {
	fresh := map[string]*corev1.PersistentVolumeClaim{}
	cached := func(name string) *corev1.PersistentVolumeClaim {
		if claim, err := c.claims.Get(reconcile.Key{Namespace: set.Namespace, Name: name}); err == nil {
			return claim
		}
		return fresh[name]
	}
	scaled, _ := deletes(set)
	for _, pod := range pods {
		ordinal, _ := ordinalOf(set, pod.Name)
		if !scaled || pod.DeletionTimestamp != nil || isWanted(set, ordinal) {
			continue
		}
		for i := range set.Spec.VolumeClaimTemplates {
			name := claimName(set, &set.Spec.VolumeClaimTemplates[i], ordinal)
			if cached(name) != nil {
				continue
			}
			claim, err := c.env.Client.CoreV1().PersistentVolumeClaims(set.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				fresh[name] = claim
			} else if !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
	}
	return cached, nil
}
