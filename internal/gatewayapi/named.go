package gatewayapi

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// NamedMax is how many objects of a kind are followed at once; those beyond it in the order of Want are not.
const NamedMax = 1000

// ErrUnknown means that an object does not exist, or is not known yet.
var ErrUnknown = errors.New("it does not exist, or is not known yet")

// Named follows single objects, each by a watch of its own: a node may read no others. V is what is made of one.
type Named[V any] struct {
	informer func(namespace, name string) cache.SharedIndexInformer
	read     func(object any) (V, error)
	changed  func()
	log      *slog.Logger
	all      sync.WaitGroup

	mu       sync.Mutex
	followed map[types.NamespacedName]*followed[V]
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

// Want follows these objects and no others, until ctx ends.
func (n *Named[V]) Want(ctx context.Context, names []types.NamespacedName) {
	if len(names) > NamedMax {
		n.log.Warn("too many objects are named by Ingresses and Gateways", "objects", len(names), "limit", NamedMax)
		names = names[:NamedMax]
	}
	wanted := map[types.NamespacedName]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
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

// Value is what was made of an object that is followed, the same one as long as the object is. It is not final before the object was
// looked for.
func (n *Named[V]) Value(namespace, name string) (value V, final bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.followed[types.NamespacedName{Namespace: namespace, Name: name}]
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
