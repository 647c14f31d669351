package daemonset

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// hashLabel names a template, on revisions and on pods.
const hashLabel = appsv1.DefaultDaemonSetUniqueLabelKey

// historyLimit is how many old revisions are kept when the DaemonSet does not say.
const historyLimit = 10

// history is what is known of a DaemonSet's templates.
type history struct {
	current    *appsv1.ControllerRevision   // nil when the present template has none yet
	duplicates []*appsv1.ControllerRevision // further ones of the present template
	old        []*appsv1.ControllerRevision
}

// historyOf sorts revisions by whether they hold the present template. It is pure.
func historyOf(list []*appsv1.ControllerRevision, data []byte) history {
	var h history
	same := revisions.Equal(list, data)
	revisions.Sort(same)
	if n := len(same); n > 0 {
		h.current, h.duplicates = same[n-1], same[:n-1]
	}
	isSame := map[*appsv1.ControllerRevision]bool{}
	for _, r := range same {
		isSame[r] = true
	}
	for _, r := range list {
		if !isSame[r] {
			h.old = append(h.old, r)
		}
	}
	return h
}

// surplus are old revisions beyond the limit that no pod is of. Those that have pods
// count.
func (h history) surplus(ds *appsv1.DaemonSet, pods []*corev1.Pod) []*appsv1.ControllerRevision {
	limit := historyLimit
	if ds.Spec.RevisionHistoryLimit != nil {
		limit = int(*ds.Spec.RevisionHistoryLimit)
	}
	live := map[string]bool{}
	for _, pod := range pods {
		live[pod.Labels[hashLabel]] = true
	}
	return revisions.Surplus(h.old, limit, func(r *appsv1.ControllerRevision) bool { return live[r.Labels[hashLabel]] })
}

// revise reads the history and writes what is missing, until the present template
// has exactly one revision and that is the newest.
func (c *controller) revise(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector, pods []*corev1.Pod) (history, error) {
	data, err := revisions.Data(&ds.Spec.Template)
	if err != nil {
		return history{}, reconcile.Terminal(err)
	}
	list, err := c.claimRevisions(ctx, ds, selector)
	if err != nil {
		return history{}, err
	}
	h := historyOf(list, data)
	if h.current == nil {
		h.current, err = c.record(ctx, ds, data, revisions.Next(h.old))
		return h, err
	}
	if err := c.mergeDuplicates(ctx, h, pods); err != nil {
		return h, err
	}
	if next := revisions.Next(h.old); h.current.Revision < next {
		h.current, err = revisions.Renumber(ctx, c.env.Client, h.current, next)
	}
	return h, err
}

// claimRevisions adopts and releases, and labels revisions that have no hash, of
// upstream's first versions, with their name.
func (c *controller) claimRevisions(
	ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector,
) ([]*appsv1.ControllerRevision, error) {
	owned, err := c.revisions.Owned(ds)
	if err != nil {
		return nil, err
	}
	orphans, err := c.revisions.Orphans(ds.Namespace)
	if err != nil {
		return nil, err
	}
	api := c.env.Client.AppsV1().ControllerRevisions(ds.Namespace)
	claims := adopt.Claim(ds, selector, owned, orphans)
	list, err := adopt.CarryOut(ctx, ds, claims, adopt.Writer[*appsv1.DaemonSet, *appsv1.ControllerRevision]{
		Kind: kind, Owner: c.env.Client.AppsV1().DaemonSets(ds.Namespace).Get, Patch: api.Patch,
	})
	if err != nil {
		return nil, err
	}
	for i, r := range list {
		if r.Labels[hashLabel] != "" {
			continue
		}
		next := r.DeepCopy()
		next.Labels = maps.Clone(next.Labels)
		metav1.SetMetaDataLabel(&next.ObjectMeta, hashLabel, r.Name)
		if list[i], err = api.Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("label revision %s: %w", r.Name, err)
		}
	}
	return list, nil
}

// record writes the revision of the present template.
func (c *controller) record(ctx context.Context, ds *appsv1.DaemonSet, data []byte, number int64) (*appsv1.ControllerRevision, error) {
	hash := revisions.TemplateHash(&ds.Spec.Template, ds.Status.CollisionCount)
	r, err := revisions.Create(ctx, c.env.Client, revisions.New(revisions.Of{
		Owner: ds, Kind: kind, Labels: ds.Spec.Template.Labels, HashLabel: hashLabel, Hash: hash,
		Name: ds.Name + "-" + hash, Data: data, Number: number,
	}))
	if errors.Is(err, revisions.ErrCollision) {
		return nil, errors.Join(err, c.raiseCollisions(ctx, ds))
	}
	return r, err
}

// raiseCollisions changes the hash of the present template: another one has the
// same. It does nothing when the cache is behind, as it may be raised already.
func (c *controller) raiseCollisions(ctx context.Context, ds *appsv1.DaemonSet) error {
	api := c.env.Client.AppsV1().DaemonSets(ds.Namespace)
	fresh, err := api.Get(ctx, ds.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if fresh.UID != ds.UID || collisions(fresh) != collisions(ds) {
		return reconcile.ErrStale
	}
	fresh.Status.CollisionCount = new(collisions(fresh) + 1)
	_, err = api.UpdateStatus(ctx, fresh, metav1.UpdateOptions{})
	return err
}

func collisions(ds *appsv1.DaemonSet) int32 {
	if ds.Status.CollisionCount == nil {
		return 0
	}
	return *ds.Status.CollisionCount
}

// mergeDuplicates deletes further revisions of the present template. Their pods get
// the hash of the one that stays first, and the pass ends; the revisions go once the cache shows
// all those pods with it, so that no pass takes them for old. (Upstream gives it to all pods, so that old ones look new.)
func (c *controller) mergeDuplicates(ctx context.Context, h history, pods []*corev1.Pod) error {
	if len(h.duplicates) == 0 {
		return nil
	}
	same := map[string]bool{}
	for _, r := range h.duplicates {
		same[r.Labels[hashLabel]] = true
	}
	hash, labelled := h.current.Labels[hashLabel], false
	for _, pod := range pods {
		if was := pod.Labels[hashLabel]; was == hash || !same[was] {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": map[string]string{hashLabel: hash}}})
		if err != nil {
			return err
		}
		_, err = c.env.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("label pod %s: %w", pod.Name, err)
		}
		labelled = true
	}
	if labelled {
		return reconcile.ErrStale
	}
	return errors.Join(reconcile.ErrStale, revisions.Delete(ctx, c.env.Client, h.duplicates...))
}
