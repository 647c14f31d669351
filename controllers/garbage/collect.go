package garbage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// owners sorts an object's owner references by what their objects are.
type owners struct {
	// solid exist; waiting exist and are being deleted after their dependents;
	// absent are not there; foreign cannot be: the object has no namespace, and the kind has.
	solid, waiting, absent, foreign []metav1.OwnerReference
	// again is when to look once more, as no monitor has an owner that exists: nothing would tell of its end.
	again time.Duration
}

// decision is what an object's owners mean for it.
type decision int

const (
	// keep leaves the object alone.
	keep decision = iota
	// trim removes the references to owners that are gone or going.
	trim
	// remove deletes the object.
	remove
)

// decide is the rule of garbage collection. It is pure: one solid owner keeps an
// object, none of any kind that counts keeps it too.
func (o owners) decide() decision {
	leaving := len(o.absent) + len(o.waiting)
	switch {
	case leaving == 0:
		return keep
	case len(o.solid) > 0:
		return trim
	case len(o.foreign) > 0:
		return keep
	default:
		return remove
	}
}

// reconcile judges one object.
func (c *controller) reconcile(ctx context.Context, key object) (time.Duration, error) {
	if c.acquitted(key) {
		return 0, nil
	}
	item, err := c.client(key).Get(ctx, key.name, metav1.GetOptions{})
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	ctx = reconcile.WithCause(ctx, item)
	if item.DeletionTimestamp != nil {
		return c.finish(ctx, key, item)
	}
	if len(item.OwnerReferences) == 0 {
		return 0, nil
	}
	sorted, err := c.classify(ctx, key, item)
	if err != nil {
		return 0, err
	}
	switch sorted.decide() {
	case trim:
		return 0, c.trim(ctx, key, item, append(sorted.absent, sorted.waiting...))
	case remove:
		return 0, c.remove(ctx, key, item, len(sorted.waiting) > 0)
	default:
		return sorted.again, nil
	}
}

// acquitted reports whether the cache alone shows that an object stays: that
// spares a read for every object when a term begins. A wrong acquittal does not
// last, as the end of an owner brings its dependents back.
func (c *controller) acquitted(key object) bool {
	informer := c.monitor(key.resource)
	if informer == nil {
		return false
	}
	found, _, err := informer.GetIndexer().GetByKey(cache.NewObjectName(key.namespace, key.name).String())
	item := reconcile.ObjectOf(found)
	if err != nil || item == nil || item.GetDeletionTimestamp() != nil {
		return false
	}
	for _, ref := range item.GetOwnerReferences() {
		meant, err := c.meant(key, ref)
		if err != nil {
			return false
		}
		if v, ok := c.find(ref.UID); !ok || !meant.is(v) || v.meta.GetDeletionTimestamp() != nil {
			return false
		}
	}
	return true
}

func (c *controller) client(key object) metadata.ResourceInterface {
	if key.namespace == "" {
		return c.env.Metadata.Resource(key.resource)
	}
	return c.env.Metadata.Resource(key.resource).Namespace(key.namespace)
}

// classify looks at each owner: in the cache first, and through the API when the
// cache does not have it.
func (c *controller) classify(ctx context.Context, key object, item metav1.Object) (owners, error) {
	var out owners
	for _, ref := range item.GetOwnerReferences() {
		c.tellForeign(key, item, ref)
		owner, ok, err := c.owner(ctx, key, ref)
		if ok && err == nil {
			out.again = max(out.again, c.unseen(owner))
		}
		switch {
		case errors.Is(err, errForeign):
			out.foreign = append(out.foreign, ref)
		case err != nil:
			return owners{}, fmt.Errorf("owner %s %s: %w", ref.Kind, ref.Name, err)
		case !ok:
			out.absent = append(out.absent, ref)
		case waits(owner):
			out.waiting = append(out.waiting, ref)
		default:
			out.solid = append(out.solid, ref)
		}
	}
	return out, nil
}

// unseen is when to look again after an owner that no monitor has: a kind gets its monitor some time after its first object, and
// that may be gone by then. Seldom, if it has existed for long: some kinds have none.
func (c *controller) unseen(owner metav1.Object) time.Duration {
	if _, ok := c.find(owner.GetUID()); ok {
		return 0
	}
	return min(max(c.env.Clock.Since(owner.GetCreationTimestamp().Time), monitorInterval), unseenInterval)
}

// errForeign says that an object without a namespace refers to an owner of a kind with one.
var errForeign = errors.New("owner has a namespace, and the object has none")

// identity is all that an owner reference says of its owner. An object with the same uid alone is another one: the reference is wrong.
type identity struct {
	object
	uid types.UID
}

// is reports whether the object is the one that is meant. It may be watched in another version.
func (i identity) is(v vertex) bool {
	return i.resource.GroupResource() == v.resource.GroupResource() &&
		i.namespace == v.namespace && i.name == v.name && i.uid == v.meta.GetUID()
}

// meant is the identity of the owner that an object refers to: an owner with a namespace is in that of the object.
func (c *controller) meant(key object, ref metav1.OwnerReference) (identity, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return identity{}, err
	}
	mapping, err := c.mappingOf(gv.WithKind(ref.Kind))
	if err != nil {
		return identity{}, err
	}
	meant := identity{object{resource: mapping.Resource, name: ref.Name}, ref.UID}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if meant.namespace = key.namespace; key.namespace == "" {
			return identity{}, errForeign
		}
	}
	return meant, nil
}

// owner finds the object behind a reference; ok is false when it is certain that
// there is none.
func (c *controller) owner(ctx context.Context, key object, ref metav1.OwnerReference) (owner metav1.Object, ok bool, err error) {
	meant, err := c.meant(key, ref)
	if err != nil {
		return nil, false, err
	}
	if v, ok := c.find(ref.UID); ok && meant.is(v) {
		return v.meta, true, nil
	}
	if c.knownAbsent(meant) {
		return nil, false, nil
	}
	found, err := c.client(meant.object).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.UID != ref.UID {
		c.noteAbsent(meant)
		return nil, false, nil
	}
	return found, err == nil, err
}

func (c *controller) knownAbsent(owner identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.absent[owner]
}

func (c *controller) noteAbsent(owner identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.absent) >= absentLimit {
		clear(c.absent)
	}
	c.absent[owner] = true
}

// tellForeign reports an owner reference to what is in another namespace. Such an owner counts as absent.
func (c *controller) tellForeign(key object, item metav1.Object, ref metav1.OwnerReference) {
	if v, ok := c.find(ref.UID); !ok || v.namespace == "" || v.namespace == key.namespace {
		return
	}
	about := &corev1.ObjectReference{Namespace: key.namespace, Name: key.name, UID: item.GetUID()}
	if mapping, err := c.kindOf(key.resource); err == nil {
		about.APIVersion, about.Kind = mapping.GroupVersion().String(), mapping.Kind
	}
	c.env.Events.Eventf(about, corev1.EventTypeWarning, "OwnerRefInvalidNamespace",
		"ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		ref.APIVersion, ref.Kind, key.namespace, ref.Name, ref.UID, key.namespace)
}

func (c *controller) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	c.mapping.Lock()
	defer c.mapping.Unlock()
	if c.mapper == nil {
		return schema.GroupVersionKind{}, errors.New("kinds not discovered yet")
	}
	return c.mapper.KindFor(resource)
}

// remove deletes the object in the version in which it was judged. An owner that
// waits makes its dependents wait for theirs, unless a cycle would then wait for
// itself.
func (c *controller) remove(ctx context.Context, key object, item *metav1.PartialObjectMetadata, awaited bool) error {
	policy := metav1.DeletePropagationBackground
	switch {
	case slices.Contains(item.Finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(item.Finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	case awaited && c.hasWaitingFor(item.UID):
		policy = metav1.DeletePropagationBackground
	case awaited && len(c.dependents(item.UID)) > 0:
		policy = metav1.DeletePropagationForeground
	}
	err := c.client(key).Delete(ctx, key.name, metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &item.UID, ResourceVersion: &item.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s/%s: %w", key.resource.Resource, key.namespace, key.name, err)
	}
	return nil
}

// hasWaitingFor reports whether a dependent of uid is itself being deleted in
// the foreground: that is a cycle.
func (c *controller) hasWaitingFor(uid types.UID) bool {
	return slices.ContainsFunc(c.dependents(uid), func(v vertex) bool { return waits(v.meta) })
}

// trim removes owner references.
func (c *controller) trim(ctx context.Context, key object, item *metav1.PartialObjectMetadata, leaving []metav1.OwnerReference) error {
	left := slices.DeleteFunc(slices.Clone(item.OwnerReferences), func(ref metav1.OwnerReference) bool {
		return slices.ContainsFunc(leaving, func(l metav1.OwnerReference) bool { return l.UID == ref.UID })
	})
	return c.patch(ctx, key, item, "ownerReferences", left)
}

// finish carries on the deletion of an object that waits for or lets go of its
// dependents.
func (c *controller) finish(ctx context.Context, key object, item *metav1.PartialObjectMetadata) (time.Duration, error) {
	if !orphans(item) && !waits(item) {
		return 0, nil
	}
	if !c.synced() {
		return unsyncedDelay, nil
	}
	if orphans(item) {
		return 0, c.release(ctx, key, item)
	}
	return 0, c.await(ctx, key, item)
}

// release removes the item from its dependents' owners, then its finalizer.
func (c *controller) release(ctx context.Context, key object, item *metav1.PartialObjectMetadata) error {
	for _, d := range c.dependents(item.UID) {
		live, err := c.client(d.object).Get(ctx, d.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && live.UID != d.meta.GetUID() {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.trim(ctx, d.object, live, []metav1.OwnerReference{{UID: item.UID}}); err != nil {
			return err
		}
	}
	return c.unfinalize(ctx, key, item, metav1.FinalizerOrphanDependents)
}

// await judges the item's dependents, and lets it go when none blocks it.
func (c *controller) await(ctx context.Context, key object, item *metav1.PartialObjectMetadata) error {
	blocked := false
	for _, d := range c.dependents(item.UID) {
		if blocks(d.meta, item.UID) {
			blocked = true
		}
		if d.meta.GetDeletionTimestamp() != nil {
			continue
		}
		if _, err := c.reconcile(ctx, d.object); err != nil {
			return err
		}
	}
	if blocked {
		return nil // the end of a dependent brings the item back
	}
	return c.unfinalize(ctx, key, item, metav1.FinalizerDeleteDependents)
}

func (c *controller) unfinalize(ctx context.Context, key object, item *metav1.PartialObjectMetadata, finalizer string) error {
	left := slices.DeleteFunc(slices.Clone(item.Finalizers), func(f string) bool { return f == finalizer })
	return c.patch(ctx, key, item, "finalizers", left)
}

// patch replaces one list of the metadata, in the version that was read. A merge
// patch works for every kind, custom ones too.
func (c *controller) patch(ctx context.Context, key object, item *metav1.PartialObjectMetadata, field string, value any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": item.UID, "resourceVersion": item.ResourceVersion, field: value,
	}})
	if err != nil {
		return err
	}
	_, err = c.client(key).Patch(ctx, key.name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch %s %s/%s: %w", key.resource.Resource, key.namespace, key.name, err)
	}
	return nil
}
