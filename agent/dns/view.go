package dns

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Indexes of the agent's caches: addresses of Services, slices by their Service, slices by their endpoints with hostnames.
const (
	byAddress  = "dns/address"
	byService  = "dns/service"
	byEndpoint = "dns/endpoint"
)

// view answers from the agent's caches; it is a records.View.
type view struct{ services, slices cache.SharedIndexInformer }

func newView(factory informers.SharedInformerFactory) *view {
	v := &view{factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer()}
	// Before the start these cannot fail.
	_ = v.services.AddIndexers(cache.Indexers{byAddress: addressesOfService})
	_ = v.slices.AddIndexers(cache.Indexers{byService: serviceOfSlice, byEndpoint: addressesOfSlice})
	return v
}

func (v *view) synced() bool { return v.services.HasSynced() && v.slices.HasSynced() }

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

func (v *view) Service(namespace, name string) *corev1.Service {
	o, _, _ := v.services.GetIndexer().GetByKey(namespace + "/" + name)
	s, _ := o.(*corev1.Service)
	return s
}

func (v *view) HasServices(namespace string) bool {
	keys, err := v.services.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace)
	return err == nil && len(keys) > 0
}

func (v *view) Slices(namespace, name string) []*discoveryv1.EndpointSlice {
	return indexed[*discoveryv1.EndpointSlice](v.slices, byService, namespace+"/"+name)
}

func (v *view) ServicesAt(address netip.Addr) []*corev1.Service {
	return indexed[*corev1.Service](v.services, byAddress, address.String())
}

func (v *view) SlicesAt(address netip.Addr) []*discoveryv1.EndpointSlice {
	return indexed[*discoveryv1.EndpointSlice](v.slices, byEndpoint, address.String())
}

func indexed[T any](informer cache.SharedIndexInformer, index, key string) (all []T) {
	found, _ := informer.GetIndexer().ByIndex(index, key)
	for _, o := range found {
		if object, ok := o.(T); ok {
			all = append(all, object)
		}
	}
	return all
}
