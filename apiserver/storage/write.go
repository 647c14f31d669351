package storage

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// writeAttempts bounds how often a write is decided anew because the world moved
// between reading and applying. Each lost race means that somebody else won.
const writeAttempts = 64

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// Change is what a Decide function wants done with its object.
type Change struct {
	// Object is stored; with Delete the object is removed instead, and Object, if any,
	// is only shown to the client.
	Object resource.Object
	Delete bool
	// Claims are taken and Releases given back in the same transaction. A claim
	// that somebody holds makes Decide run again.
	Claims, Releases []string
}

// Decide computes the change from a view of the store. It may run several times
// and must not keep what it did before. A nil change leaves everything as it is.
type Decide func(v *View) (*Change, error)

// View is what a Decide function may look at. All it read with Require must
// still be so when the change is applied.
type View struct {
	table *Table
	root  *state.Root
	// Current is the object that the write is about, nil if there is none.
	Current *Cached
	record  *record.Record
	checks  []command.Op
	// replaced are writes of other objects.
	replaced []command.Op
	// wide: it was asked for more than single objects, or for what nothing checks.
	wide bool
}

// Bytes is how much the object that the write is about takes as it is stored, 0 if there is none.
func (v *View) Bytes() int {
	if v.record == nil {
		return 0
	}
	return len(v.record.Value)
}

// Require reads another object. The change is applied only if that object is
// then the same, or still absent.
func (v *View) Require(gvr schema.GroupVersionResource, namespace, name string) (resource.Object, error) {
	t := v.table.store.Table(gvr)
	key := t.key(namespace, name)
	r, ok := v.root.Get(key)
	if !ok {
		v.checks = append(v.checks, command.Op{Kind: command.Check, Key: key, Precondition: command.Absent})
		return nil, nil
	}
	v.checks = append(v.checks, command.Op{Kind: command.Check, Key: key, Precondition: command.AtRevision, Revision: r.ModRevision})
	cached, err := t.decode(r)
	if err != nil {
		return nil, err
	}
	return cached.object, nil
}

// Snapshot returns another table as the view has it. Nothing holds others back from
// changing it before the change is applied.
func (v *View) Snapshot(gvr schema.GroupVersionResource) Snapshot {
	v.wide = true
	return Snapshot{table: v.table.store.Table(gvr), root: v.root}
}

// Count is how many objects of a resource a namespace has in the view.
func (v *View) Count(gr schema.GroupResource, namespace string) int {
	v.wide = true
	return v.root.Count(resourcePrefix(gr) + namespace + "/")
}

// Add creates another object in the same transaction, if there is none of its name then.
func (v *View) Add(gvr schema.GroupVersionResource, obj resource.Object) error {
	return v.put(gvr, obj, command.Op{Precondition: command.Absent})
}

// Remove deletes another object in the same transaction, whatever it has become.
func (v *View) Remove(gvr schema.GroupVersionResource, obj resource.Object) {
	key := v.table.store.Table(gvr).key(obj.GetNamespace(), obj.GetName())
	v.replaced = append(v.replaced, command.Op{Kind: command.Delete, Key: key, UID: string(obj.GetUID()), Precondition: command.Any})
}

// Replace writes another object of the view in the same transaction, if it is then
// still what the view has.
func (v *View) Replace(gvr schema.GroupVersionResource, obj resource.Object) error {
	r, ok := v.root.Get(v.table.store.Table(gvr).key(obj.GetNamespace(), obj.GetName()))
	if !ok {
		return apierrors.NewNotFound(gvr.GroupResource(), obj.GetName())
	}
	return v.put(gvr, obj, command.Op{Precondition: command.AtRevision, Revision: r.ModRevision})
}

// put completes op, which has a precondition, to a write of another object.
func (v *View) put(gvr schema.GroupVersionResource, obj resource.Object, op command.Op) (err error) {
	t := v.table.store.Table(gvr)
	op.Kind, op.Key, op.UID = command.Put, t.key(obj.GetNamespace(), obj.GetName()), string(obj.GetUID())
	if op.Value, err = t.store.codec.encode(t.stored, obj); err == nil {
		op.Value, err = t.store.codec.seals.seal(context.Background(), t.stored.StorageResource(), op.Key, op.Value)
	}
	v.replaced = append(v.replaced, op)
	return err
}

// holds reports whether a decision on the view would be the same on another root.
func (v *View) holds(key string, root *state.Root) bool {
	if root.Revision == v.root.Revision {
		return true
	}
	if r, _ := root.Get(key); v.wide || !sameRecord(r, v.record) {
		return false
	}
	for _, c := range v.checks {
		r, found := root.Get(c.Key)
		if found != (c.Precondition == command.AtRevision) || found && r.ModRevision != c.Revision {
			return false
		}
	}
	return true
}

func sameRecord(a, b *record.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ModRevision == b.ModRevision
}

// Claimed reports who holds a claim: the uid of the owner, or "".
func (v *View) Claimed(claim string) string {
	v.wide = true
	if r, ok := v.root.Get(claim); ok {
		return r.UID
	}
	return ""
}

// ClaimedOf is how many claims of a pool somebody has.
func (v *View) ClaimedOf(pool string) int {
	v.wide = true
	return v.root.Count(ClaimKey(pool, ""))
}

// Write changes one object. It returns the object as stored (for a deletion, as
// it was last), or what Decide refused with.
func (t *Table) Write(ctx context.Context, namespace, name string, decide Decide) (resource.Object, error) {
	return t.writeFrom(ctx, t.store.log.Root(), false, namespace, name, decide)
}

// WriteNewest is Write for a change that rests on more than what is checked when it is applied, such as
// on what a Snapshot has not: it is decided on nothing older than the call.
func (t *Table) WriteNewest(ctx context.Context, namespace, name string, decide Decide) (resource.Object, error) {
	root, err := t.store.log.ReadIndex(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	return t.writeFrom(ctx, root, true, namespace, name, decide)
}

// writeFrom decides on root first; fresh says that it is not older than the call.
func (t *Table) writeFrom(ctx context.Context, root *state.Root, fresh bool, namespace, name string,
	decide Decide) (resource.Object, error) {
	w := &write{table: t, key: t.key(namespace, name), name: name, decide: decide}
	for range writeAttempts {
		obj, final, err := w.attempt(ctx, root, fresh)
		if final {
			return obj, err
		}
		newest, readErr := t.store.log.ReadIndex(ctx)
		if readErr != nil {
			return nil, unavailable(readErr)
		}
		if w.undone != nil && w.undone.holds(w.key, newest) {
			return obj, err // this replica was up to date, for all that was looked at
		}
		root, fresh = newest, true
	}
	return nil, contended()
}

// write is one call of Write over its attempts.
type write struct {
	table  *Table
	key    string
	name   string
	decide Decide
	// undone is the view on which the last attempt decided to change nothing.
	undone *View
}

// attempt decides on root and applies. It is final unless the decision rests on
// a root that may be old, or the world moved before the change was applied.
func (w *write) attempt(ctx context.Context, root *state.Root, fresh bool) (obj resource.Object, final bool, err error) {
	v, err := w.view(root)
	if err != nil {
		return nil, true, err
	}
	change, err := w.decide(v)
	if w.undone = nil; err != nil || change == nil {
		w.undone = v
	}
	if err != nil {
		return nil, fresh, err
	}
	if change == nil {
		if v.Current == nil {
			return nil, fresh, nil
		}
		return shallowCopy(v.Current.object), fresh, nil
	}
	return w.apply(ctx, v, change)
}

// Preview decides on a linearizable root and returns what Write would have
// stored, without a new resourceVersion (dry run).
func (t *Table) Preview(ctx context.Context, namespace, name string, decide Decide) (resource.Object, error) {
	root, err := t.store.log.ReadIndex(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	w := &write{table: t, key: t.key(namespace, name), name: name, decide: decide}
	v, err := w.view(root)
	if err != nil {
		return nil, err
	}
	change, err := decide(v)
	switch {
	case err != nil:
		return nil, err
	case change != nil && change.Object != nil:
		if _, err := w.kept(change.Object); err != nil {
			return nil, err // what cannot be converted cannot be written either
		}
		return t.created(v, change.Object), nil
	case v.Current != nil:
		return shallowCopy(v.Current.object), nil
	default:
		return nil, nil
	}
}

func (w *write) view(root *state.Root) (*View, error) {
	v := &View{table: w.table, root: root}
	r, ok := root.Get(w.key)
	if !ok {
		return v, nil
	}
	cached, err := w.table.decode(r)
	v.record, v.Current = r, cached
	return v, err
}

func (w *write) apply(ctx context.Context, v *View, change *Change) (resource.Object, bool, error) {
	c, err := w.command(ctx, v, change)
	if err != nil {
		return nil, true, err
	}
	c.Essential = w.essential(v, change)
	OriginFrom(ctx).stamp(&c)
	result, err := w.table.store.log.Propose(ctx, c)
	if err != nil {
		return nil, true, unavailable(err)
	}
	switch result.Code {
	case command.OK:
		return w.stored(v, change, result), true, nil
	case command.PreconditionFailed:
		return nil, false, nil
	case command.FenceStale:
		return nil, true, fenceStale()
	default:
		return nil, true, apierrors.NewInternalError(fmt.Errorf("the store answered %s: %s", result.Code, result.Message))
	}
}

// command is the transaction: the object first, then checks and claims.
func (w *write) command(ctx context.Context, v *View, change *Change) (command.Command, error) {
	op, err := w.objectOp(ctx, v, change)
	if err != nil {
		return command.Command{}, err
	}
	ops := append([]command.Op{op}, v.checks...)
	ops = append(ops, v.replaced...)
	uid := string(v.owner(change).GetUID())
	for _, claim := range change.Claims {
		ops = append(
			ops,
			command.Op{Kind: command.Put, Key: claim, UID: uid, Value: []byte{command.EncodingJSON}, Precondition: command.Absent},
		)
	}
	for _, claim := range change.Releases {
		ops = append(ops, command.Op{Kind: command.Delete, Key: claim, UID: uid, Precondition: command.Any})
	}
	return command.Command{Ops: ops}, nil
}

func (v *View) owner(change *Change) resource.Object {
	if change.Delete {
		return v.Current.object
	}
	return change.Object
}

func (w *write) objectOp(ctx context.Context, v *View, change *Change) (command.Op, error) {
	op := command.Op{Kind: command.Put, Key: w.key, Precondition: command.Absent}
	if v.record != nil {
		op.Precondition, op.Revision = command.AtRevision, v.record.ModRevision
	}
	if change.Delete {
		op.Kind = command.Delete
		return op, nil
	}
	obj, err := w.kept(change.Object)
	if err != nil {
		return op, err
	}
	op.UID = string(obj.GetUID())
	value, err := w.table.store.codec.encode(w.table.stored, obj)
	if len(value) > MaxObjectBytes {
		return op, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the object is %d bytes; at most %d can be stored", len(value), MaxObjectBytes),
		)
	}
	if err == nil {
		op.Value, err = w.table.store.codec.seals.seal(ctx, w.table.stored.StorageResource(), w.key, value)
	}
	return op, err
}

// kept is an object in the version in which it is kept.
func (w *write) kept(obj resource.Object) (resource.Object, error) {
	switch t := w.table; {
	case t.dynamic != nil:
		return t.dynamic.Store(obj.(*unstructured.Unstructured))
	case t.kind.ToStored != nil:
		return t.kind.ToStored(obj), nil
	default:
		return obj, nil
	}
}

// MaxObjectBytes is the largest object that can be stored, in its encoded form.
const MaxObjectBytes = 3 << 19 // 1.5 MiB, as etcd's default request limit

// stored is the answer to a successful write. With several operations the first
// revision is the object's own.
func (w *write) stored(v *View, change *Change, result command.Result) resource.Object {
	revision := result.Revision
	if len(result.Revisions) > 0 {
		revision = result.Revisions[0]
	}
	obj := change.Object
	if obj == nil {
		obj = shallowCopy(v.Current.object)
	}
	obj.SetResourceVersion(formatRevision(revision))
	obj.SetSelfLink("")
	return w.table.created(v, obj)
}

// statusOf turns any error into the Status that ends a watch.
func statusOf(err error) runtime.Object {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	return &metav1.Status{Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code}
}
