package dns

import (
	"cmp"
	"net/netip"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/net/dns/kept"
)

// Indexes of the agent's caches: addresses of Services, slices by their Service, slices by their endpoints with hostnames.
const (
	byAddress  = "dns/address"
	byService  = "dns/service"
	byEndpoint = "dns/endpoint"
)

var (
	ofServices = cache.Indexers{byAddress: addressesOfService}
	ofSlices   = cache.Indexers{byService: serviceOfSlice, byEndpoint: addressesOfSlice}
)

// view answers from the agent's caches, and before these are filled from what an earlier agent kept.
type view struct {
	services, slices cache.SharedIndexInformer
	// earlier is nil if nothing was kept, and once the caches are filled.
	earlier atomic.Pointer[objects]
}

// nothing is what is known without a server and an earlier agent.
var nothing = newObjects(kept.Names{})

func newView(factory informers.SharedInformerFactory) *view {
	v := &view{services: factory.Core().V1().Services().Informer(), slices: factory.Discovery().V1().EndpointSlices().Informer()}
	// Before the start these cannot fail.
	_ = v.services.AddIndexers(ofServices)
	_ = v.slices.AddIndexers(ofSlices)
	return v
}

// synced reports whether the caches hold what a server has told.
func (v *view) synced() bool { return v.services.HasSynced() && v.slices.HasSynced() }

// known reports whether the Services are known, from a server or an earlier agent.
func (v *view) known() bool { return v.synced() || v.earlier.Load() != nil }

// objects are what answers come from now.
func (v *view) objects() *objects {
	if v.synced() {
		return &objects{v.services.GetIndexer(), v.slices.GetIndexer()}
	}
	return cmp.Or(v.earlier.Load(), nothing)
}

// keep answers from these until the caches are filled.
func (v *view) keep(names kept.Names) { v.earlier.Store(newObjects(names)) }

// forget frees what was kept, which nobody asks any more.
func (v *view) forget() { v.earlier.Store(nil) }

// objects are Services and slices of one moment or of a cache; it is a records.View.
type objects struct{ services, slices cache.Indexer }

func newObjects(names kept.Names) *objects {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	o := &objects{cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	_ = o.services.AddIndexers(ofServices) // other names than the first
	_ = o.slices.AddIndexers(ofSlices)
	for _, s := range names.Services {
		_ = o.services.Add(s) // it has a name
	}
	for _, s := range names.Slices {
		_ = o.slices.Add(s)
	}
	return o
}

func (o *objects) names() (all kept.Names) {
	for _, s := range o.services.List() {
		all.Services = append(all.Services, s.(*corev1.Service))
	}
	for _, s := range o.slices.List() {
		all.Slices = append(all.Slices, s.(*discoveryv1.EndpointSlice))
	}
	return all
}

func addressesOfService(o any) ([]string, error) {
	s, ok := o.(*corev1.Service)
	if !ok || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil, nil
	}
	return s.Spec.ClusterIPs, nil
}

func serviceOfSlice(o any) ([]string, error) {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || s.Labels[discoveryv1.LabelServiceName] == "" {
		return nil, nil
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

func addressesOfSlice(o any) (all []string, err error) {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	for i := range s.Endpoints {
		if h := s.Endpoints[i].Hostname; h != nil && *h != "" {
			all = append(all, s.Endpoints[i].Addresses...)
		}
	}
	return all, nil
}

func (o *objects) Service(namespace, name string) *corev1.Service {
	found, _, _ := o.services.GetByKey(namespace + "/" + name)
	s, _ := found.(*corev1.Service)
	return s
}

func (o *objects) HasServices(namespace string) bool {
	keys, err := o.services.IndexKeys(cache.NamespaceIndex, namespace)
	return err == nil && len(keys) > 0
}

func (o *objects) Slices(namespace, name string) []*discoveryv1.EndpointSlice {
	return indexed[*discoveryv1.EndpointSlice](o.slices, byService, namespace+"/"+name)
}

func (o *objects) ServicesAt(address netip.Addr) []*corev1.Service {
	return indexed[*corev1.Service](o.services, byAddress, address.String())
}

func (o *objects) SlicesAt(address netip.Addr) []*discoveryv1.EndpointSlice {
	return indexed[*discoveryv1.EndpointSlice](o.slices, byEndpoint, address.String())
}

func indexed[T any](from cache.Indexer, index, key string) (all []T) {
	found, _ := from.ByIndex(index, key)
	for _, o := range found {
		if object, ok := o.(T); ok {
			all = append(all, object)
		}
	}
	return all
}
