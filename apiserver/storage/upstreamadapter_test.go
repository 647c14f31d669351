package storage

import (
	"bytes"
	"context"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
	ring "github.com/setpoint-io/setpoint/raftstore/watch"
)

// upstream lets the published tests of k8s.io/apiserver's storage.Interface talk
// to a Table. What lies between their prefix and the name is the namespace here;
// their objects are converted to and from the version that is stored.
type upstream struct {
	table  *Table
	log    *compactedLog
	scheme *runtime.Scheme
}

var (
	_ storage.Interface                             = (*upstream)(nil)
	_ storagetesting.InterfaceWithPrefixTransformer = (*upstream)(nil)
)

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	log := &compactedLog{Local: raftstoretest.NewLocal(state.Options{})}
	store := New(log, scheme, []*resource.Any{examplePods})
	table := store.Table(examplePods.GroupVersionResource())
	table.prefix = upstreamPrefix
	u := &upstream{table: table, log: log, scheme: scheme}
	// Revision 1 is that of an empty etcd: the suite counts on every object being newer.
	u.increaseRevision(t.Context(), t)
	return u
}

var examplePods = &resource.Any{
	GroupVersionKind: examplev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods",
	New:     func() resource.Object { return &examplev1.Pod{} },
	NewList: func() runtime.Object { return &examplev1.PodList{} },
	Fields: func(obj resource.Object) fields.Set {
		return fields.Set{"spec.nodeName": obj.(*examplev1.Pod).Spec.NodeName}
	},
}

// compactedLog forgets its history up to a revision when told to; the ring itself
// forgets by size.
type compactedLog struct {
	*raftstoretest.Local
	compacted atomic.Uint64
}

func (l *compactedLog) RootAt(revision uint64) (*state.Root, error) {
	if revision < l.compacted.Load() {
		return nil, ring.ErrCompacted
	}
	return l.Local.RootAt(revision)
}

func (l *compactedLog) Watch(prefix string, after uint64) (*ring.Watcher, error) {
	if after < l.compacted.Load() {
		return nil, ring.ErrCompacted
	}
	return l.Local.Watch(prefix, after)
}

// upstreamPrefix is where the tests keep their objects.
const upstreamPrefix = "/pods/"

func splitKey(key string) (namespace, name string) {
	directory, name := path.Split(key)
	return namespaceOf(directory), name
}

func namespaceOf(directory string) string {
	below, _ := strings.CutPrefix(directory, strings.TrimSuffix(upstreamPrefix, "/"))
	return strings.Trim(below, "/")
}

// stored converts a test's object to a stored one of its own.
func (u *upstream) stored(obj runtime.Object) (*examplev1.Pod, error) {
	pod := &examplev1.Pod{}
	err := u.scheme.Convert(obj, pod, nil)
	pod = pod.DeepCopy() // conversion shares maps and slices
	pod.ResourceVersion = ""
	return pod, err
}

// fill converts a stored object into a test's.
func (u *upstream) fill(out, obj runtime.Object) error {
	if out == nil {
		return nil
	}
	return u.scheme.Convert(obj.DeepCopyObject(), out, nil)
}

func (u *upstream) internal(obj runtime.Object) (*example.Pod, error) {
	pod := &example.Pod{}
	return pod, u.fill(pod, obj)
}

func (u *upstream) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (u *upstream) Create(ctx context.Context, key string, obj, out runtime.Object, _ uint64) error {
	if version, err := u.Versioner().ObjectResourceVersion(obj); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	namespace, name := splitKey(key)
	written, err := u.table.Write(ctx, namespace, name, func(v *View) (*Change, error) {
		if v.Current != nil {
			return nil, storage.NewKeyExistsError(key, 0)
		}
		pod, err := u.stored(obj)
		return &Change{Object: pod}, err
	})
	if err != nil {
		return err
	}
	return u.fill(out, written)
}

func (u *upstream) Delete(
	ctx context.Context,
	key string,
	out runtime.Object,
	preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc,
	_ runtime.Object,
	_ storage.DeleteOptions,
) error {
	namespace, name := splitKey(key)
	var refused error
	var refusedAt uint64
	written, err := u.table.Write(ctx, namespace, name, func(v *View) (*Change, error) {
		switch {
		case v.Current == nil:
			return nil, storage.NewKeyNotFoundError(key, 0)
		case v.record.ModRevision == refusedAt: // judged before: the caller counts
			return nil, refused
		}
		pod, err := u.internal(v.Current.object)
		if err != nil {
			return nil, err
		}
		if refused = preconditions.Check(key, pod); refused == nil {
			refused = validate(ctx, pod)
		}
		refusedAt = v.record.ModRevision
		return &Change{Delete: true}, refused
	})
	if err != nil {
		return err
	}
	return u.fill(out, written)
}

func (u *upstream) GuaranteedUpdate(
	ctx context.Context,
	key string,
	destination runtime.Object,
	ignoreNotFound bool,
	preconditions *storage.Preconditions,
	update storage.UpdateFunc,
	_ runtime.Object,
) error {
	namespace, name := splitKey(key)
	written, err := u.table.Write(ctx, namespace, name, func(v *View) (*Change, error) {
		pod, meta := &example.Pod{}, storage.ResponseMeta{}
		switch {
		case v.Current != nil:
			meta.ResourceVersion = v.record.ModRevision
			if err := u.fill(pod, v.Current.object); err != nil {
				return nil, err
			}
		case !ignoreNotFound:
			return nil, storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, pod); err != nil {
			return nil, err
		}
		return u.updated(v, pod, meta, update)
	})
	if err != nil {
		return err
	}
	return u.fill(destination, written)
}

// updated is nil if the update stores what is stored already.
func (u *upstream) updated(v *View, pod *example.Pod, meta storage.ResponseMeta, update storage.UpdateFunc) (*Change, error) {
	changed, _, err := update(pod, meta)
	if err != nil {
		return nil, err
	}
	obj, err := u.stored(changed)
	if err != nil {
		return nil, err
	}
	text, err := u.table.store.codec.encode(examplePods, obj)
	if err == nil && v.record != nil && bytes.Equal(text, v.record.Value) {
		return nil, nil
	}
	return &Change{Object: obj}, err
}

func (u *upstream) Get(ctx context.Context, key string, o storage.GetOptions, out runtime.Object) error {
	namespace, name := splitKey(key)
	found, err := u.table.Get(ctx, namespace, name, o.ResourceVersion)
	switch {
	case err == nil:
		return u.fill(out, found.object)
	case !isNotFound(err):
		return err
	case o.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	}
	return storage.NewKeyNotFoundError(key, 0)
}

// selection is what the options select: a directory, or one object in it.
func selection(key string, o storage.ListOptions) Selection {
	s := Selection{Namespace: namespaceOf(key), Labels: o.Predicate.Label, Fields: o.Predicate.Field}
	if o.Recursive {
		return s
	}
	namespace, name := splitKey(key)
	s.Namespace = namespace
	only := fields.OneTermEqualSelector("metadata.name", name)
	if s.Fields == nil || s.Fields.Empty() {
		s.Fields = only
	} else {
		s.Fields = fields.AndSelectors(only, s.Fields)
	}
	return s
}

func (u *upstream) GetList(ctx context.Context, key string, o storage.ListOptions, out runtime.Object) error {
	switch o.ResourceVersionMatch {
	case "", metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan:
	default: // the handlers see to it
		return apierrors.NewBadRequest("unknown resourceVersionMatch")
	}
	page, err := u.table.List(ctx, ListOptions{
		Selection: selection(key, o), ResourceVersion: o.ResourceVersion, Match: o.ResourceVersionMatch,
		Limit: o.Predicate.Limit, Continue: o.Predicate.Continue,
	})
	if err != nil {
		return err
	}
	list := out.(*example.PodList)
	token, _, _ := strings.Cut(page.Continue, beginMark) // what is behind it is not upstream's
	list.ListMeta = metav1.ListMeta{ResourceVersion: page.ResourceVersion, Continue: token, RemainingItemCount: page.Remaining}
	list.Items = []example.Pod{}
	for _, item := range page.Items {
		pod, err := u.internal(item.object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *pod)
	}
	return nil
}

func (u *upstream) Watch(ctx context.Context, key string, o storage.ListOptions) (watch.Interface, error) {
	w, err := u.table.Watch(ctx, WatchOptions{
		Selection: selection(key, o), ResourceVersion: o.ResourceVersion,
		SendInitialEvents: o.SendInitialEvents, Bookmarks: o.Predicate.AllowWatchBookmarks || o.ProgressNotify,
	})
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if obj, ok := Uncache(e.Object).(*examplev1.Pod); ok {
			if e.Object, err = u.internal(obj); err != nil {
				panic(err)
			}
		}
		return e, true
	}), nil
}

func (u *upstream) Stats(context.Context) (storage.Stats, error) {
	return storage.Stats{ObjectCount: int64(u.table.Count())}, nil
}

func (u *upstream) ReadinessCheck() error { return nil }

func (u *upstream) RequestWatchProgress(context.Context) error {
	u.table.store.Nudge()
	return nil
}

func (u *upstream) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return u.table.store.LinearizableRevision(ctx)
}

func (u *upstream) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

func (u *upstream) CompactRevision() int64 { return int64(u.log.compacted.Load()) }

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer
// for tests that only count by it: values are not transformed here.
func (u *upstream) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	var _ value.Transformer = modify(storagetesting.NewPrefixTransformer(nil, false))
	return func() {}
}

// compact is a storagetesting.Compaction. As in etcd it takes a revision itself.
func (u *upstream) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	revision, err := ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	u.log.compacted.Store(revision)
	u.increaseRevision(ctx, t)
}

// increaseRevision is a storagetesting.IncreaseRVFunc.
func (u *upstream) increaseRevision(ctx context.Context, t *testing.T) int64 {
	result, err := u.log.Propose(ctx, command.Command{Ops: []command.Op{{Kind: command.Put, Key: "/elsewhere"}}})
	if err != nil {
		t.Fatal(err)
	}
	return int64(result.Revision)
}
