package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// NamedMax is how many objects of a kind are followed at once.
const NamedMax = 1000

var (
	// ErrUnknown means that an object does not exist, or is not known yet.
	ErrUnknown = errors.New("it does not exist, or is not known yet")
	// ErrCut means that an object is not read, because its namespace has as many as it gets.
	ErrCut = fmt.Errorf("it is not read: more than %d are named, and its namespace has its share of them", NamedMax)
)

// Divide splits the names, those that matter most first, into those that are followed and those that are too many: namespaces have equally
// many of NamedMax, so that none of them keeps others from being served. Nodes and loops find the same.
func Divide(names []types.NamespacedName) (followed, cut []types.NamespacedName) {
	once := map[types.NamespacedName]bool{}
	names = slices.DeleteFunc(slices.Clone(names), func(n types.NamespacedName) bool {
		again := once[n]
		once[n] = true
		return again
	})
	return shares.Divide(names, NamedMax, func(n types.NamespacedName) string { return n.Namespace })
}

// Named follows single objects, each by a watch of its own: a node may read no others. V is what is made of one.
type Named[V any] struct {
	informer func(namespace, name string) cache.SharedIndexInformer
	read     func(object any) (V, error)
	changed  func()
	log      *slog.Logger
	all      sync.WaitGroup

	mu       sync.Mutex
	followed map[types.NamespacedName]*followed[V]
	cut      map[types.NamespacedName]bool
}

type followed[V any] struct {
	cancel   context.CancelFunc
	informer cache.SharedIndexInformer
	// version is that of the object from which value or err was made.
	version string
	value   V
	err     error
}

// NamedSecrets follows Secrets; changed is called when one of them has changed.
func NamedSecrets[V any](client kubernetes.Interface, read func(*corev1.Secret) (V, error), changed func(), log *slog.Logger) *Named[V] {
	return newNamed(func(namespace, name string) cache.SharedIndexInformer {
		return coreinformers.NewFilteredSecretInformer(client, namespace, 0, cache.Indexers{}, called(name))
	}, read, changed, log)
}

// NamedConfigMaps follows ConfigMaps; changed is called when one of them has changed.
func NamedConfigMaps[V any](
	client kubernetes.Interface, read func(*corev1.ConfigMap) (V, error), changed func(), log *slog.Logger,
) *Named[V] {
	return newNamed(func(namespace, name string) cache.SharedIndexInformer {
		return coreinformers.NewFilteredConfigMapInformer(client, namespace, 0, cache.Indexers{}, called(name))
	}, read, changed, log)
}

func called(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

func newNamed[T, V any](
	informer func(namespace, name string) cache.SharedIndexInformer, read func(*T) (V, error), changed func(), log *slog.Logger,
) *Named[V] {
	return &Named[V]{
		informer: informer, changed: changed, log: log, followed: map[types.NamespacedName]*followed[V]{},
		read: func(object any) (V, error) {
			if o, ok := object.(*T); ok {
				return read(o)
			}
			return *new(V), ErrUnknown
		},
	}
}

// Want follows these objects and no others, until ctx ends, as far as Divide lets it.
func (n *Named[V]) Want(ctx context.Context, names []types.NamespacedName) {
	kept, cut := Divide(names)
	wanted := setOf(kept)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(cut) != len(n.cut) && len(cut) > 0 {
		n.log.Warn("Ingresses and Gateways name too many objects", "limit", NamedMax, "left out", len(cut), "first", cut[0].String())
	}
	n.cut = setOf(cut)
	for name, f := range n.followed {
		if !wanted[name] {
			f.cancel()
			delete(n.followed, name)
		}
	}
	for name := range wanted {
		if n.followed[name] == nil {
			n.followed[name] = n.follow(ctx, name)
		}
	}
}

func setOf(names []types.NamespacedName) map[types.NamespacedName]bool {
	set := make(map[types.NamespacedName]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func (n *Named[V]) follow(ctx context.Context, name types.NamespacedName) *followed[V] {
	ctx, cancel := context.WithCancel(ctx)
	informer := n.informer(name.Namespace, name.Name)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it has not stopped
		AddFunc: func(any) { n.changed() }, UpdateFunc: func(any, any) { n.changed() }, DeleteFunc: func(any) { n.changed() },
	})
	n.all.Go(func() { informer.RunWithContext(ctx) })
	return &followed[V]{cancel: cancel, informer: informer}
}

// Stop ends all watches.
func (n *Named[V]) Stop() {
	n.Want(context.Background(), nil)
	n.all.Wait()
}

// Followed is how many objects are followed.
func (n *Named[V]) Followed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.followed)
}

// Cut is how many are wanted and not followed.
func (n *Named[V]) Cut() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.cut)
}

// Value is what was made of an object that is followed, the same one as long as the object is. It is not final before the object was
// looked for. One that is too many is ErrCut.
func (n *Named[V]) Value(namespace, name string) (value V, final bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	f := n.followed[key]
	if n.cut[key] {
		return value, true, ErrCut
	}
	if f == nil {
		return value, false, ErrUnknown
	}
	object, found, _ := f.informer.GetStore().GetByKey(namespace + "/" + name)
	if !found {
		return value, f.informer.HasSynced(), ErrUnknown
	}
	version := ""
	if o, ok := object.(metav1.Object); ok {
		version = o.GetResourceVersion()
	}
	if f.version != version || version == "" {
		f.version = version
		f.value, f.err = n.read(object)
	}
	return f.value, true, f.err
}
