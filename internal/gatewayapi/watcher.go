package gatewayapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	// servedIntervalMin and servedIntervalMax are the pauses between two questions whether kinds are served that were not yet.
	servedIntervalMin = time.Second
	servedIntervalMax = 30 * time.Second
)

// Objects are those of one moment.
type Objects struct {
	Classes    []*v1.GatewayClass
	Gateways   []*v1.Gateway
	HTTPRoutes []*v1.HTTPRoute
	GRPCRoutes []*v1.GRPCRoute
	TLSRoutes  []*v1.TLSRoute
	Grants     []*v1.ReferenceGrant

	ListenerSets       []*v1.ListenerSet
	BackendTLSPolicies []*v1.BackendTLSPolicy
}

// typed makes objects of a kind what they are; an error keeps none away.
type typed func(*unstructured.Unstructured) (metav1.Object, error)

// kinds are by the plural of their names.
var kinds = map[string]typed{
	"backendtlspolicies": asType[v1.BackendTLSPolicy],
	"gatewayclasses":     asType[v1.GatewayClass],
	"listenersets":       asType[v1.ListenerSet],
	"gateways":           asType[v1.Gateway],
	"httproutes":         asType[v1.HTTPRoute],
	"grpcroutes":         asType[v1.GRPCRoute],
	"referencegrants":    asType[v1.ReferenceGrant],
	"tlsroutes":          asType[v1.TLSRoute],
}

func asType[T any, P interface {
	*T
	metav1.Object
}](u *unstructured.Unstructured) (metav1.Object, error) {
	made := P(new(T))
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made)
	if err != nil {
		made = P(new(T))
		made.SetNamespace(u.GetNamespace())
		made.SetName(u.GetName())
		made.SetUID(u.GetUID())
		made.SetResourceVersion(u.GetResourceVersion())
	}
	return made, err
}

// claiming are the kinds whose objects claim hosts or ports, by their names.
var claiming = map[string]typed{
	"Gateway": asType[v1.Gateway], "ListenerSet": asType[v1.ListenerSet], "HTTPRoute": asType[v1.HTTPRoute],
	"GRPCRoute": asType[v1.GRPCRoute], "TLSRoute": asType[v1.TLSRoute],
}

// Claiming is an object of a kind that claims hosts or ports as what it is; nil for other kinds, and for one that cannot be read.
func Claiming(kind string, u *unstructured.Unstructured) metav1.Object {
	as := claiming[kind]
	if as == nil {
		return nil
	}
	made, err := as(u)
	if err != nil {
		return nil
	}
	return made
}

// Config of a Watcher; all fields are required.
type Config struct {
	Client    dynamic.Interface
	Discovery discovery.DiscoveryInterface
	// Changed is called with what was and is, one of which may be nil.
	Changed func(before, after metav1.Object)
	Logger  *slog.Logger
}

// Watcher follows all objects of the kinds.
type Watcher struct {
	Config

	mu sync.Mutex
	// informers are of the kinds that are served.
	informers map[string]cache.SharedIndexInformer
}

// NewWatcher follows nothing before it runs.
func NewWatcher(c Config) *Watcher {
	return &Watcher{Config: c, informers: map[string]cache.SharedIndexInformer{}}
}

// Run follows kinds as they begin to be served, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var children sync.WaitGroup
	defer children.Wait()
	for pause := servedIntervalMin; ; pause = min(2*pause, servedIntervalMax) {
		if w.followServed(ctx, &children) {
			<-ctx.Done()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// followServed begins to follow what is served now, and reports whether that is everything.
func (w *Watcher) followServed(ctx context.Context, children *sync.WaitGroup) bool {
	served, err := w.Discovery.ServerResourcesForGroupVersion(GroupVersion.String())
	if err != nil {
		return false // it is not there yet, or nobody answers
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range served.APIResources {
		plural := served.APIResources[i].Name
		if as := kinds[plural]; as != nil && w.informers[plural] == nil {
			w.informers[plural] = w.follow(ctx, children, plural, as)
		}
	}
	return len(w.informers) == len(kinds)
}

func (w *Watcher) follow(ctx context.Context, children *sync.WaitGroup, plural string, as typed) cache.SharedIndexInformer {
	informer := dynamicinformer.NewFilteredDynamicInformer(
		w.Client, Resource(plural), metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	_ = informer.SetTransform(func(o any) (any, error) { // it has not started
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		made, err := as(u)
		if err != nil {
			w.Logger.Warn("an object cannot be read and is left out", "kind", plural, "object", u.GetNamespace()+"/"+u.GetName(), "err", err)
		}
		return made, nil
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it has not stopped
		AddFunc:    func(o any) { w.Changed(nil, objectOf(o)) },
		UpdateFunc: func(before, after any) { w.Changed(objectOf(before), objectOf(after)) },
		DeleteFunc: func(o any) { w.Changed(objectOf(o), nil) },
	})
	children.Go(func() { informer.RunWithContext(ctx) })
	children.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.Changed(nil, nil) // it is complete, also if it is empty
		}
	})
	return informer
}

func objectOf(o any) metav1.Object {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	object, _ := o.(metav1.Object)
	return object
}

// Objects returns those of now, and whether those of all kinds that are served are known.
func (w *Watcher) Objects() (Objects, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, informer := range w.informers {
		if !informer.HasSynced() {
			return Objects{}, false
		}
	}
	return Objects{
		Classes: list[v1.GatewayClass](w, "gatewayclasses"), Gateways: list[v1.Gateway](w, "gateways"),
		HTTPRoutes: list[v1.HTTPRoute](w, "httproutes"), GRPCRoutes: list[v1.GRPCRoute](w, "grpcroutes"),
		TLSRoutes: list[v1.TLSRoute](w, "tlsroutes"), Grants: list[v1.ReferenceGrant](w, "referencegrants"),
		ListenerSets: list[v1.ListenerSet](w, "listenersets"), BackendTLSPolicies: list[v1.BackendTLSPolicy](w, "backendtlspolicies"),
	}, len(w.informers) > 0
}

func list[T any](w *Watcher, plural string) []*T {
	informer := w.informers[plural]
	if informer == nil {
		return nil
	}
	all := informer.GetStore().List()
	found := make([]*T, 0, len(all))
	for _, o := range all {
		if t, ok := o.(*T); ok {
			found = append(found, t)
		}
	}
	return found
}

// Names tells whether objects of a kind, by its plural, name others that nodes read.
func Names(plural string) bool {
	switch plural {
	case "gatewayclasses", "gateways", "listenersets", "referencegrants", "backendtlspolicies":
		return true
	}
	return false
}

// Read reads what a store keeps of the kinds, by their plurals. What cannot be read is left out.
func Read(kept map[string][]*unstructured.Unstructured) Objects {
	return Objects{
		Classes: read[v1.GatewayClass](kept["gatewayclasses"]), Gateways: read[v1.Gateway](kept["gateways"]),
		ListenerSets: read[v1.ListenerSet](kept["listenersets"]), Grants: read[v1.ReferenceGrant](kept["referencegrants"]),
		BackendTLSPolicies: read[v1.BackendTLSPolicy](kept["backendtlspolicies"]),
		HTTPRoutes:         read[v1.HTTPRoute](kept["httproutes"]), GRPCRoutes: read[v1.GRPCRoute](kept["grpcroutes"]),
		TLSRoutes: read[v1.TLSRoute](kept["tlsroutes"]),
	}
}

// Named are the objects that are named by those of one moment, of a resource that is "secrets" or "configmaps".
func (o *Objects) Named(resource string) []types.NamespacedName {
	switch resource {
	case "secrets":
		return SecretNames(o)
	case "configmaps":
		return Authorities(o)
	}
	return nil
}

func read[T any](kept []*unstructured.Unstructured) (all []*T) {
	for _, u := range kept {
		made := new(T)
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made) == nil {
			all = append(all, made)
		}
	}
	return all
}
